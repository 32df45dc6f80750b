"""The chain of transforms that a connector's configuration names, run on decoded records.

In: ``TransformSpec``s. Out: one callable from a record to a record, or to None where a transform drops it.
Their order is that of the configuration; a transform with a predicate leaves records alone that the
predicate does not choose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from connector.config.transforms import REGEX_ROUTER, PredicateSpec, TransformSpec
from connector.formats.record import DecodedRecord

Transform = Callable[[DecodedRecord], DecodedRecord | None]
Predicate = Callable[[DecodedRecord], bool]

_JAVA_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_REPLACEMENT = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$(\d)", re.DOTALL)


def build_transforms(specs: Sequence[TransformSpec]) -> Transform | None:
    """The whole chain, or None if there is nothing in it."""
    steps = [_step(spec) for spec in specs]
    if not steps:
        return None

    def run(record: DecodedRecord) -> DecodedRecord | None:
        current: DecodedRecord | None = record
        for step in steps:
            if current is None:
                return None
            current = step(current)
        return current

    return run


def _step(spec: TransformSpec) -> Transform:
    transform = _transform(spec)
    if spec.predicate is None:
        return transform
    chooses, negate = predicate(spec.predicate), spec.negate
    return lambda record: transform(record) if chooses(record) != negate else record


def _transform(spec: TransformSpec) -> Transform:
    if spec.type == REGEX_ROUTER:
        return regex_router(spec.options["regex"], spec.options["replacement"])
    raise ValueError(f"transform {spec.type} is not supported")


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
