"""The chain of transforms that a connector's configuration names, run on decoded records.

In: ``TransformSpec``s. Out: one callable from a record to a record, or to None where a transform drops it.
Their order is that of the configuration; a transform with a predicate leaves records alone that the
predicate does not choose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from connector.config import REGEX_ROUTER, PredicateSpec, TransformSpec
from connector.errors import Problem
from connector.formats.record import DecodedRecord
from smt import Record as SmtRecord
from smt import SmtOptionError, build_transform

Transform = Callable[[DecodedRecord], DecodedRecord | None]
Predicate = Callable[[DecodedRecord], bool]

_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REPLACEMENT = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$(\d)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Chain:
    """All transforms, one after the other. ``losses`` are what they lose, one line each, to be said at start."""

    steps: tuple[Transform, ...]
    losses: tuple[str, ...] = ()

    def __call__(self, record: DecodedRecord) -> DecodedRecord | None:
        current: DecodedRecord | None = record
        for step in self.steps:
            if current is None:
                return None
            current = step(current)
        return current


def build_transforms(
    specs: Sequence[TransformSpec], schemaless_output: bool = False, strict: bool = False
) -> Chain | None:
    """The whole chain, or None if there is nothing in it; ``SmtOptionError`` if a transform refuses its options.

    ``schemaless_output``: values are written without schemas. ``strict``: as the Java transforms do it, even where it
    loses records.
    """
    if not specs:
        return None
    steps, losses = [], []
    for spec in specs:
        transform, lost = _transform(spec, schemaless_output, strict)
        if spec.predicate is not None:
            transform = _chosen(transform, predicate(spec.predicate), spec.negate)
        steps.append(transform)
        losses += [f"transform {spec.alias}: {loss}" for loss in lost]
    return Chain(tuple(steps), tuple(losses))


def check_transform(spec: TransformSpec, schemaless_output: bool = False) -> list[Problem]:
    """What is wrong with the options of one of the ScyllaDB transforms: the ``transform_check`` of ``config.load``."""
    try:
        build_transform(spec.type, spec.options, schemaless_output=schemaless_output)
    except SmtOptionError as error:
        return [Problem(found.option, found.problem, suggestion=found.suggestion) for found in error.problems]
    return []


def _chosen(transform: Transform, chooses: Predicate, negate: bool) -> Transform:
    return lambda record: transform(record) if chooses(record) != negate else record


def _transform(spec: TransformSpec, schemaless_output: bool, strict: bool) -> tuple[Transform, tuple[str, ...]]:
    if spec.type == REGEX_ROUTER:
        return regex_router(spec.options["regex"], spec.options["replacement"]), ()
    options = {"compatibility": "strict"} | dict(spec.options) if strict else spec.options
    built = build_transform(spec.type, options, schemaless_output=schemaless_output)
    return _of_smt(built.apply), built.losses


def _of_smt(apply: Callable[[SmtRecord], SmtRecord | None]) -> Transform:
    def transform(record: DecodedRecord) -> DecodedRecord | None:
        done = apply(
            SmtRecord(record.topic, record.key, record.value, record.headers, record.key_schema, record.value_schema)
        )
        if done is None:
            return None
        return DecodedRecord(
            topic=done.topic,
            key_schema=done.key_schema,
            key=done.key,
            value_schema=done.value_schema,
            value=done.value,
            headers=done.headers,
            kind=record.kind,
            partition=record.partition,
        )

    return transform


def predicate(spec: PredicateSpec) -> Predicate:
    """One of Connect's own predicates."""
    if spec.type == "TopicNameMatches":
        pattern = java_pattern(spec.options["pattern"])
        return lambda record: pattern.fullmatch(record.topic) is not None
    if spec.type == "HasHeaderKey":
        name = spec.options["name"]
        return lambda record: any(header == name for header, _ in record.headers)
    if spec.type == "RecordIsTombstone":
        return lambda record: record.value is None
    raise ValueError(f"predicate {spec.type} is not supported")


def regex_router(regex: str, replacement: str) -> Transform:
    """Connect's ``RegexRouter``: a topic that the expression matches as a whole gets its first match replaced."""
    pattern = java_pattern(regex)

    def route(record: DecodedRecord) -> DecodedRecord:
        if pattern.fullmatch(record.topic) is None:
            return record
        topic = pattern.sub(lambda match: expand(replacement, match), record.topic, count=1)
        return replace(record, topic=topic)

    return route


def java_pattern(regex: str) -> re.Pattern[str]:
    """A Java expression as a Python one; they differ in how they write named groups."""
    return re.compile(_JAVA_GROUP.sub("(?P<", regex))


def expand(replacement: str, match: re.Match[str]) -> str:
    """Java's replacement text: ``$1``, ``${name}``, and a backslash before what is meant literally."""
    count = match.re.groups

    def part(found: re.Match[str]) -> str:
        literal, name, digit = found.groups()
        if literal is not None:
            return str(literal)
        group = match.group(name) if name is not None else match.group(int(digit))
        return group or ""

    if count > 9:
        # Java takes as many digits as still name a group.
        return _expand_long(replacement, match, count)
    return _REPLACEMENT.sub(part, replacement)


def _expand_long(replacement: str, match: re.Match[str], count: int) -> str:
    out, at = [], 0
    while at < len(replacement):
        found = _REPLACEMENT.match(replacement, at)
        if found is None:
            out.append(replacement[at])
            at += 1
            continue
        literal, name, digit = found.groups()
        at = found.end()
        if literal is not None:
            out.append(literal)
            continue
        if name is not None:
            out.append(match.group(name) or "")
            continue
        number = int(digit)
        while at < len(replacement) and replacement[at].isdigit() and number * 10 + int(replacement[at]) <= count:
            number = number * 10 + int(replacement[at])
            at += 1
        out.append(match.group(number) or "")
    return "".join(out)
