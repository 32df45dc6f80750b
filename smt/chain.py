"""A chain of transforms as a connector's file names it, for whoever reads its topics.

    chain = build_chain({"transforms": "key,flat", "transforms.key.type": "ValueToKey", …})

In: the lines ``transforms…`` and ``predicates…`` of a connector's file; its other lines do no harm. Out: one
``Transform``, or ``SmtOptionError`` with all that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from connector.step_conditions import conditions_in, step_condition
from connector.step_defaults import of_the_connector
from smt.connect.options import MISSING
from smt.connect.predicates import Predicate, chosen
from smt.errors import OptionProblem, SmtOptionError, nearest
from smt.options import IN_CELLS
from smt.predicate import build_predicate
from smt.record import Record
from smt.transform import TYPES, Transform, build_transform

#: What every step may have besides its own options.
_OF_A_STEP: Final = ("type", "predicate", "negate", "plugin.version")
_OF_A_PREDICATE: Final = ("type", "plugin.version")


def build_chain(properties: Mapping[str, str]) -> Transform:
    """All steps, one after the other, as one transform."""
    problems: list[OptionProblem] = []
    predicates = _predicates(properties, problems)
    steps = [
        step
        for alias in _aliases("transforms", properties, problems)
        if (step := _step(alias, properties, predicates, problems)) is not None
    ]
    if problems:
        raise SmtOptionError(problems)
    notes = tuple(f"transform {step.type}: {note}" for step in steps for note in step.notes)
    again = partial(build_chain, dict(properties))
    return Transform("chain", _one_after_the_other(tuple(step.apply for step in steps)), notes, again=again)


def _one_after_the_other(steps: tuple[Callable[[Record], Record | None], ...]) -> Callable[[Record], Record | None]:
    def apply(record: Record) -> Record | None:
        current: Record | None = record
        for step in steps:
            if current is None:
                return None
            current = step(current)
        return current

    return apply


def _aliases(what: str, properties: Mapping[str, str], problems: list[OptionProblem]) -> list[str]:
    """The names that a list holds; options of one that it does not name would be ignored in silence."""
    listed = [alias.strip() for alias in properties.get(what, "").split(",") if alias.strip()]
    problems += [
        OptionProblem(what, f"'{alias}' is named twice", None, properties[what])
        for alias in sorted({alias for alias in listed if listed.count(alias) > 1})
    ]
    for name in properties:
        # An alias may have dots of its own.
        if name.startswith(f"{what}.") and not f"{name}.".startswith(tuple(f"{what}.{alias}." for alias in listed)):
            alias = name.split(".")[1]
            close = nearest(alias, listed)
            hint = f"did you mean {close}?" if close else f"add {alias} to {what}"
            problems.append(OptionProblem(name, f"`{what}` names no '{alias}'", hint))
    return list(dict.fromkeys(listed))


def _options(prefix: str, properties: Mapping[str, str], every: tuple[str, ...] = _OF_A_STEP) -> dict[str, str]:
    """What a step or a predicate is given, without what ``every`` one may have."""
    own = {name[len(prefix) :]: text for name, text in properties.items() if name.startswith(prefix)}
    return {name: text for name, text in own.items() if name not in every}


def _predicates(properties: Mapping[str, str], problems: list[OptionProblem]) -> dict[str, Predicate | None]:
    """By their names; None for one that is wrong, which its problem says."""
    found: dict[str, Predicate | None] = {}
    for alias in _aliases("predicates", properties, problems):
        prefix = f"predicates.{alias}."
        found[alias] = None
        try:
            own = _options(prefix, properties, _OF_A_PREDICATE)
            found[alias] = build_predicate(properties.get(f"{prefix}type", ""), own)
        except SmtOptionError as error:
            problems += _named(prefix, error)
    return found


def _step(
    alias: str,
    properties: Mapping[str, str],
    predicates: Mapping[str, Predicate | None],
    problems: list[OptionProblem],
) -> Transform | None:
    prefix = f"transforms.{alias}."
    type_name = properties.get(f"{prefix}type", "").strip()
    if not type_name:
        problems.append(OptionProblem(f"{prefix}type", MISSING))
        return None
    asked = step_condition(properties.get(f"{prefix}predicate"), properties.get(f"{prefix}negate"), predicates)
    problems += [
        OptionProblem(prefix + each.option, each.problem, each.lacks and prefix + each.lacks, each.value)
        for each in asked.wrong
    ]
    options = _options(prefix, properties)
    for name, meant in conditions_in(options).items():
        hint = f"did you mean {prefix}{meant}?"
        problems.append(OptionProblem(prefix + name, "Unknown option", hint, options.pop(name)))
    strict = properties.get("scylla.compatibility", "").strip() == "strict"
    options = of_the_connector(TYPES.get(type_name), options, properties.get("cdc.output.format"), strict) | options
    try:
        built = build_transform(type_name, options, cells=_cells(properties))
    except SmtOptionError as error:
        problems += _named(prefix, error)
        return None
    condition = predicates.get(asked.predicate)
    if condition is None:
        return built
    return Transform(built.type, chosen(built.apply, condition, asked.negate), built.notes)


def _cells(properties: Mapping[str, str]) -> bool | None:
    """Whether records have cells, where the connector's own lines say that they have none."""
    return False if IN_CELLS.get(properties.get("cdc.output.format", "").strip().lower()) is False else None


def _named(prefix: str, error: SmtOptionError) -> list[OptionProblem]:
    return [
        OptionProblem(prefix + (one.option or "type"), one.problem, one.suggestion, one.value) for one in error.problems
    ]
