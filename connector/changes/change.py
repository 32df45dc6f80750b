"""One row operation of a batch, with its images.

In: raw rows of the log and their layout. Out: what happened, as raw rows for the encoders (which plan their
decoding per layout) and, decoded on demand, as Python values for everyone else. ``UNTOUCHED`` is what a
column holds that the operation did not write; None is CQL's null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, assert_never

from connector.changes.batch import Batch, Row
from connector.changes.description import TableDescription
from connector.changes.layout import ColumnPlace, deleted_elements_type
from connector.errors import PoisonRow
from connector.values import ListType, MapType, SetType, UserType, decoder, is_multi_cell

#: Operations of rows that no log has: those of snapshots that nobody asked for, and of others. What they say of a row
#: is what a post-image says.
WHOLE_ROW: Final = b"\x7f"
WHOLE_ROW_ASKED_FOR: Final = b"\x7e"
#: The cell of a whole row that says what is left of those of its cells that have a TTL, in seconds, as JSON:
#: {"column": 120}. No log has it.
ENDS: Final = "cdc$ends"
#: The one behind it, that says when they were written, in microseconds: {"column": 1732622400000000}.
WRITTEN: Final = "cdc$written"
SNAPSHOTS: Final[dict[bytes | None, str]] = {WHOLE_ROW: "true", WHOLE_ROW_ASKED_FOR: "incremental"}

#: c, u, d are operations on one row, r is a row of a snapshot; range and partition delete several rows of a clustered
#: table.
ChangeKind = Literal["c", "u", "d", "r", "range", "partition"]

TRUE: Final = b"\x01"


class Untouched(Enum):
    """The type of ``UNTOUCHED``."""

    UNTOUCHED = "untouched"

    def __repr__(self) -> str:
        return "UNTOUCHED"


UNTOUCHED: Final = Untouched.UNTOUCHED


@dataclass(frozen=True, slots=True)
class CollectionDelta:
    """What an operation did to a collection or user type that is stored cell by cell.

    ``overwrite``: everything that was there before is gone. ``set`` holds (key, value) pairs: list keys are
    timeuuids, a set's values are True, a user type's keys are field names. ``removed`` holds keys.
    """

    overwrite: bool
    set: tuple[tuple[Any, Any], ...] = ()
    removed: tuple[Any, ...] = ()


@dataclass(slots=True, eq=False)
class Change:
    """One operation. ``row``, ``before`` and ``after`` are raw rows in the batch's layout.

    ``code`` is the raw ``cdc$operation``. ``before`` and ``after`` are the logged images of the row, if there are any.
    ``end`` is the second row of a range delete, whose first is ``row``. ``follows_another``: the batch holds an earlier
    operation on the same row, so that ``before`` is not what this one found; only set where there are images.
    """

    batch: Batch
    kind: ChangeKind
    code: int
    row: Row
    before: Row | None = None
    after: Row | None = None
    end: Row | None = None
    follows_another: bool = False

    @property
    def snapshot(self) -> str:
        """Whether a snapshot says it, as `source.snapshot` does."""
        return "false" if self.kind != "r" else SNAPSHOTS[self.row[self.batch.layout.operation]]

    @property
    def table(self) -> TableDescription:
        return self.batch.layout.description

    @property
    def stream_id(self) -> bytes:
        return self.batch.stream_id

    @property
    def time(self) -> bytes:
        """The raw ``cdc$time``."""
        return self.batch.time

    @property
    def timestamp_us(self) -> int:
        """The write timestamp in microseconds."""
        return self.batch.timestamp_us

    @property
    def batch_seq_no(self) -> int | None:
        raw = self.row[self.batch.layout.batch_seq_no]
        return None if raw is None else int.from_bytes(raw, "big", signed=True)

    @property
    def ttl(self) -> int | None:
        """Seconds, or None if the write had no TTL."""
        at = self.batch.layout.ttl
        raw = self.row[at] if at >= 0 else None
        return int.from_bytes(raw, "big", signed=True) if raw else None

    @property
    def ends(self) -> bytes | None:
        """Of a whole row: what is left of its cells, if any of them has a TTL (see `ENDS`)."""
        return self.row[-2] if self._is_dated else None

    @property
    def written(self) -> bytes | None:
        """Of a whole row: when its cells were written (see `WRITTEN`)."""
        return self.row[-1] if self._is_dated else None

    @property
    def _is_dated(self) -> bool:
        return self.kind == "r" and self.batch.layout.columns[-1] == WRITTEN

    @property
    def key(self) -> dict[str, Any]:
        """The primary key in its own order; clustering columns are None for static rows and whole partitions."""
        return {place.name: self._value(place, self.row) for place in self.batch.layout.keys}

    @property
    def columns(self) -> dict[str, Any]:
        """Per column that is not of the key: UNTOUCHED, None, a value, or a CollectionDelta."""
        return {
            place.name: self._decoded(place, lambda place=place: _written(place, self.row))
            for place in self.batch.layout.places
            if not place.column.is_key
        }

    @property
    def before_values(self) -> dict[str, Any] | None:
        """The pre-image: the columns that it holds; None if none was logged."""
        return None if self.before is None else self._image(self.before)

    @property
    def after_values(self) -> dict[str, Any] | None:
        """The post-image: all columns; None if none was logged."""
        return None if self.after is None else self._image(self.after)

    def bound(self, row: Row) -> tuple[list[Any], bool]:
        """A bound of a range delete: the clustering values that it fixes, and whether it includes them."""
        raw_code = row[self.batch.layout.operation]
        inclusive = raw_code in (b"\x05", b"\x07")
        return [self._value(place, row) for place in bound_places(self.batch.layout.clustering_key, row)], inclusive

    def _image(self, image: Row) -> dict[str, Any]:
        present = {}
        for place in self.batch.layout.places:
            raw = _cell(image, place)
            if raw is not None or _flag(image, place.deleted):
                present[place.name] = self._value(place, image)
        return present

    def _value(self, place: ColumnPlace, row: Row) -> Any:
        raw = _cell(row, place)
        if raw is None:
            return None
        return self._decoded(place, lambda: _plain(place, raw))

    def _decoded(self, place: ColumnPlace, decode: Any) -> Any:
        try:
            return decode()
        except ValueError as error:
            raise poison(self.batch, self.row, f"column {place.name}: {error}") from error


def poison(batch: Batch, row: Row, why: str) -> PoisonRow:
    """The error for a row that cannot be used; the message names table, stream, time and number."""
    raw_number = row[batch.layout.batch_seq_no]
    number = int.from_bytes(raw_number, "big", signed=True) if raw_number else None
    return PoisonRow(
        f"{batch.layout.description.full_name}, stream {batch.stream_id.hex()}, time {batch.timeuuid}, "
        f"batch_seq_no {number}: {why}"
    )


def bound_places(clustering_key: Sequence[ColumnPlace], row: Row) -> list[ColumnPlace]:
    """The clustering columns that a bound fixes: those before the first without a value."""
    places = []
    for place in clustering_key:
        if _cell(row, place) is None:
            break
        places.append(place)
    return places


def _cell(row: Row, place: ColumnPlace) -> bytes | None:
    return None if place.value is None else row[place.value]


def _flag(row: Row, at: int | None) -> bool:
    return at is not None and row[at] == TRUE


def _plain(place: ColumnPlace, raw: bytes) -> Any:
    value = decoder(place.log_type)(raw)
    if isinstance(place.column.type, ListType) and is_multi_cell(place.column.type) and value is not None:
        return [element for _, element in value]
    return value


def _written(place: ColumnPlace, row: Row) -> Any:
    raw = _cell(row, place)
    deleted = _flag(row, place.deleted)
    type_ = place.column.type
    if not is_multi_cell(type_):
        if raw is not None:
            return decoder(type_)(raw)
        return None if deleted else UNTOUCHED
    gone = None if place.deleted_elements is None else row[place.deleted_elements]
    if raw is None and gone is None and not deleted:
        return UNTOUCHED
    removed = _removed(type_, gone)
    value = None if raw is None else decoder(place.log_type)(raw)
    if value is None:
        return CollectionDelta(deleted, (), removed)
    match type_:
        case MapType() | ListType():
            return CollectionDelta(deleted, tuple(value), removed)
        case SetType():
            return CollectionDelta(deleted, tuple((element, True) for element in value), removed)
        case UserType():
            fields = zip(type_.fields, value)
            return CollectionDelta(deleted, tuple((name, v) for (name, _), v in fields if v is not None), removed)
        case _:
            assert_never(type_)


def _removed(type_: Any, raw: bytes | None) -> tuple[Any, ...]:
    kind = deleted_elements_type(type_)
    if raw is None or kind is None:
        return ()
    elements = decoder(kind)(raw) or []
    if isinstance(type_, UserType):
        return tuple(field_name(type_, index) for index in elements)
    return tuple(elements)


def field_name(type_: UserType, index: int) -> str:
    """The name of a user type's field by its index, as ``cdc$deleted_elements_`` has it."""
    try:
        return type_.fields[index & 0xFFFF][0]
    except IndexError:
        raise ValueError(f"{type_.cql()} has no field number {index}") from None
