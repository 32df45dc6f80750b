"""Where a chain of transforms may send the records of a topic, so that topics can be created before there are records.

In: the chain's specs, a topic, the kind of its records. Out: the names that records may get; None where a column or the
time names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from connector.config import PredicateSpec, TransformSpec
from connector.formats.record import RecordKind
from smt import Record as SmtRecord
from smt import SmtRecordError, build_predicate, build_transform


class _Path(NamedTuple):
    """Records that take the same way: their topic, and whether they are tombstones (None: some are)."""

    topic: str
    tombstones: bool | None


def routed_topics(
    specs: Sequence[TransformSpec], topic: str, kind: RecordKind = "data", *, tombstones: bool = False
) -> frozenset[str] | None:
    """Every topic that records of ``topic`` may end in; ``tombstones``: whether there are any among them."""
    paths = {_Path(topic, False)} | ({_Path(topic, True)} if tombstones else set())
    for spec in specs:
        after: set[_Path] = set()
        for path in paths:
            chosen = _chosen(spec, path)
            if chosen is not True:
                after.add(path)
            if chosen is not False:
                if spec.options.get("route.by.field", "").strip() and kind == "data":
                    return None
                if spec.type == "TimestampRouter":
                    return None
                after |= _applied(spec, path, kind)
        paths = after
    return frozenset(path.topic for path in paths)


def _applied(spec: TransformSpec, path: _Path, kind: RecordKind) -> set[_Path]:
    """Where the records go on; nowhere if they are all dropped."""
    if spec.type == "Filter":
        return set()
    if spec.type == "RegexRouter" or spec.type == "ByLogicalTableRouter":
        try:
            moved = build_transform(spec.type, spec.options).apply(_record(path))
        except SmtRecordError:
            # Then each record is an error, and none gets a topic.
            return set()
        return {path._replace(topic=moved.topic)} if moved is not None else set()
    # A delete may become a tombstone there.
    return {path._replace(tombstones=None) if kind == "data" else path}


def _chosen(spec: TransformSpec, path: _Path) -> bool | None:
    """Whether the step is applied; None: to some of the records."""
    condition: PredicateSpec | None = spec.predicate
    if condition is None:
        return True
    if condition.type == "TopicNameMatches":
        return build_predicate(condition.type, condition.options)(_record(path)) != spec.negate
    if condition.type == "RecordIsTombstone" and path.tombstones is not None:
        return path.tombstones != spec.negate
    return None


def _record(path: _Path) -> SmtRecord:
    return SmtRecord(path.topic, None, None)
