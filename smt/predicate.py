"""A predicate by its name, as transforms have theirs.

In: the name of its class, full or short, and options as text. Out: a function that says whether a record is chosen, or
``SmtOptionError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connector.step_conditions import conditions_in
from smt.connect.options import MISSING, parse
from smt.connect.predicates import PREDICATES, PREDICATES_PACKAGE, Predicate
from smt.errors import OptionProblem, SmtOptionError, nearest
from smt.transform import PACKAGES, TYPES

_NAMES: Final = sorted({one.name for one in PREDICATES.values()})


def build_predicate(type_name: str, options: Mapping[str, str]) -> Predicate:
    """The predicate of that name; raises ``SmtOptionError`` with all that is wrong."""
    declared = PREDICATES.get(type_name.strip())
    if declared is None:
        raise SmtOptionError([unknown_predicate(type_name.strip())])
    # Taken for nothing, they would leave a step to the other records.
    conditions = conditions_in(options)
    parsed = parse(declared.options, {name: text for name, text in options.items() if name not in conditions})
    misplaced = [
        OptionProblem(
            name, "It is no option of a predicate", f"transforms.NAME.{meant} is where it belongs", options[name]
        )
        for name, meant in conditions.items()
    ]
    if parsed.problems or misplaced:
        raise SmtOptionError([*parsed.problems, *misplaced])
    return declared.build(parsed.values)


def ignored_options(type_name: str, options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Those that a predicate has not, as in Java, with what is to be said of each."""
    return parse(PREDICATES[type_name.strip()].options, options).ignored


def unknown_predicate(name: str) -> OptionProblem:
    """What is wrong with a name that is none of a predicate."""
    package, _, short = name.rpartition(".")
    supported = "one of " + ", ".join(_NAMES)
    if not name:
        return OptionProblem("", MISSING, supported)
    place = f"transforms.NAME.type is where it belongs; a predicate is {supported}"
    if name in TYPES:
        return OptionProblem("", f"{short} is a transform, and no predicate", place)
    if package in PACKAGES and short in _NAMES:
        return OptionProblem("", f"There is no predicate {name!r}", f"did you mean {PREDICATES_PACKAGE}.{short}?")
    if package in PACKAGES:
        return OptionProblem("", f"The classes of {package} are transforms, and no predicates", place)
    # Another package's class is another class, however alike its name is.
    if package and not nearest(package, [PREDICATES_PACKAGE], 0.9):
        said = f"{short} of {package} is not available: classes of the JVM cannot be loaded here"
        return OptionProblem("", said, supported)
    close = nearest(short, _NAMES, 0.8)
    return OptionProblem("", f"There is no predicate {name!r}", f"did you mean {close}?" if close else supported)
