"""Where a chain of transforms may send the records of a topic, so that topics can be created before there are records.

In: the chain's specs, a topic, the kind of its records. Out: the names that records may get; None where a column names
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from connector.config import REGEX_ROUTER, PredicateSpec, TransformSpec
from connector.formats.record import DecodedRecord, RecordKind
from connector.formats.transforms import predicate, regex_router


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
                if spec.type != REGEX_ROUTER and spec.options.get("route.by.field", "").strip() and kind == "data":
                    return None
                after.add(_applied(spec, path, kind))
        paths = after
    return frozenset(path.topic for path in paths)


def _applied(spec: TransformSpec, path: _Path, kind: RecordKind) -> _Path:
    if spec.type == REGEX_ROUTER:
        route = regex_router(spec.options["regex"], spec.options["replacement"])
        moved = route(_record(path))
        assert moved is not None
        return path._replace(topic=moved.topic)
    # A delete may become a tombstone there.
    return path._replace(tombstones=None) if kind == "data" else path


def _chosen(spec: TransformSpec, path: _Path) -> bool | None:
    """Whether the step is applied; None: to some of the records."""
    condition: PredicateSpec | None = spec.predicate
    if condition is None:
        return True
    if condition.type == "TopicNameMatches":
        return predicate(condition)(_record(path)) != spec.negate
    if condition.type == "RecordIsTombstone" and path.tombstones is not None:
        return path.tombstones != spec.negate
    return None


def _record(path: _Path) -> DecodedRecord:
    return DecodedRecord(path.topic, None, None, None, None)
