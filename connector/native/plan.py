"""A table's plan for the kernel: which rows of its log it takes, and what it writes of them.

In: an ``Outline``. Out: a ``KernelPlan``, whose words and text the kernel reads, or ``Unsupported``. The records are
those of the plan of ``connector.formats``, which is the reference; every branch here has its like there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from connector import __version__
from connector.changes import ColumnPlace, LogLayout
from connector.formats import Outline, OutlineSide, to_json
from connector.native.program import Program, Unsupported, named
from connector.values import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    UserType,
    is_multi_cell,
    native,
)

#: Beyond these a row's cells are many, or a struct's fields, and nobody has measured what the kernel would win.
MOST_COLUMNS: Final = 2000
MOST_DELTA_FIELDS: Final = 64
_TIMEUUID: Final = native("timeuuid")
_IMAGES: Final = {"none": 0, "full": 1, "only-updated": 2}


class Step(IntEnum):
    """What a key or a value is made of, one after the other."""

    LITERAL = 0
    SOURCE_MS = 1
    SOURCE_US = 2
    SOURCE_NS = 3
    NOW_MS = 4
    NOW_US = 5
    NOW_NS = 6
    STREAM_ID = 7
    TIME_ID = 8
    SEQUENCE_NUMBER = 9
    OPERATION = 10
    TTL = 11
    KIND = 12
    BEFORE = 13
    AFTER = 14
    KEY = 15


class Form(IntEnum):
    """How a column stands in a struct."""

    BARE = 0
    CELL = 1
    SET_DELTA = 2
    LIST_DELTA = 3
    MAP_DELTA = 4
    FIELDS_DELTA = 5


Steps = list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """``numbers`` are those of the kernel's ``plan`` behind its two pointers, in its order."""

    words: tuple[int, ...]
    text: bytes
    numbers: tuple[int, ...]
    columns: int
    topic: str
    version: tuple[tuple[str, bytes | None], ...]

    @property
    def headers_size(self) -> int:
        """As they count in a transaction."""
        return sum(len(name) + len(text or b"") + 10 for name, text in self.version)


def kernel_plan(outline: Outline) -> KernelPlan:
    """Asks a Schema Registry where values or keys are Avro: value first, as the plain way does."""
    layout, options = outline.layout, outline.options
    if len(layout.columns) > MOST_COLUMNS:
        raise Unsupported(f"more than {MOST_COLUMNS} columns")
    if outline.key is not None and not outline.key_places:
        raise Unsupported("a key without columns")
    legacy, strict = options.format == "legacy", options.strict
    program = Program()
    value_steps = _value_steps(program, outline)
    key_steps = -1
    if outline.key is not None:
        struct = _struct(program, outline, outline.key, outline.key_places, False, legacy, whole=False)
        key_steps = _steps(program, _framed(program, outline.key, [(Step.KEY, struct, 0)]))
    others = [place for place in layout.places if place.value is not None and not place.column.is_key]
    rows: list[int] = []
    for place in others:
        nothing = strict and _never_empty(place.column.type)
        rows += (place.value or 0, _at(place.deleted), _at(place.deleted_elements), nothing)
    keys = [place.value for place in layout.keys if place.value is not None]
    kinds = sum(bit for kind, bit in _kinds(layout) if kind not in options.skipped_operations)
    return KernelPlan(
        topic=outline.topic,
        version=tuple(outline.version),
        columns=len(layout.columns),
        numbers=(
            len(layout.columns),
            layout.stream_id,
            layout.time,
            layout.batch_seq_no,
            layout.operation,
            layout.ttl,
            0 if legacy else 1,
            outline.key is not None and outline.key.avro,
            outline.value.avro,
            kinds,
            options.tombstones,
            bool(layout.clustering_key),
            _IMAGES[options.include_before],
            _IMAGES[options.include_after],
            options.preimages,
            program.add(len(keys), *keys),
            program.add(len(others), *rows),
            key_steps,
            value_steps,
        ),
        words=tuple(program.words),
        text=bytes(program.text),
    )


def _kinds(layout: LogLayout) -> tuple[tuple[str, int], ...]:
    return (("c", 1), ("u", 2), ("d", 4)) if layout.snapshot == "false" else (("r", 8),)


def _value_steps(program: Program, outline: Outline) -> int:
    layout, options, side = outline.layout, outline.options, outline.value
    keyspace, table = layout.description.keyspace, layout.description.name
    legacy = options.format == "legacy"
    written = _Written(program, side.avro)
    written.struct("source")
    written.texts(("version", __version__), ("connector", "scylla"), ("name", options.topic_prefix))
    written.step("ts_ms", Step.SOURCE_MS)
    # Of the one field with a default the branches stand the other way round.
    written.text("snapshot", layout.snapshot, b"\0")
    written.text("db", keyspace)
    written.null("sequence")
    written.step("ts_us", Step.SOURCE_US, optional=True)
    written.step("ts_ns", Step.SOURCE_NS, optional=True)
    written.texts(("keyspace_name", keyspace), ("table_name", table))
    if options.metadata:
        for name, step in (
            ("stream_id", Step.STREAM_ID),
            ("time", Step.TIME_ID),
            ("batch_seq_no", Step.SEQUENCE_NUMBER),
            ("operation", Step.OPERATION),
            ("ttl", Step.TTL),
        ):
            written.step(name, step)
    written.close()
    before = _struct(program, outline, side, outline.before, True, legacy, whole=True)
    after = _struct(program, outline, side, outline.after, True, legacy, whole=True)
    written.step("before", Step.BEFORE, struct=before)
    written.step("after", Step.AFTER, struct=after)
    if not legacy and "payload-key" in options.key_placement:
        key = _struct(program, outline, side, outline.key_places, False, legacy, whole=False)
        written.step(options.payload_key_name, Step.KEY, struct=key)
    written.step("op", Step.KIND)
    written.step("ts_ms", Step.NOW_MS, optional=True)
    written.null("transaction")
    if legacy:
        written.step("ts_us", Step.NOW_US, optional=True)
        written.step("ts_ns", Step.NOW_NS, optional=True)
    else:
        # The Java connector leaves these two null in this format.
        written.null("ts_us")
        written.null("ts_ns")
    written.close()
    return _steps(program, _framed(program, side, written.done()))


class _Written:
    """An envelope in one of the two languages: steps, with everything between them as literals."""

    def __init__(self, program: Program, avro: bool) -> None:
        self._program, self._avro = program, avro
        self._steps: Steps = []
        self._literal = b""
        self._first = True
        self.open()

    def open(self) -> None:
        self._literal += b"" if self._avro else b"{"
        self._first = True

    def close(self) -> None:
        self._literal += b"" if self._avro else b"}"
        self._first = False

    def struct(self, name: str) -> None:
        self._name(name)
        self.open()

    def _name(self, name: str) -> None:
        if not self._avro:
            self._literal += named(name, not self._first)
        self._first = False

    def texts(self, *fields: tuple[str, str]) -> None:
        for name, text in fields:
            self.text(name, text)

    def text(self, name: str, text: str, mark: bytes = b"") -> None:
        self._name(name)
        raw = text.encode()
        self._literal += mark + _long(len(raw)) + raw if self._avro else to_json(text)

    def null(self, name: str) -> None:
        self._name(name)
        self._literal += b"\0" if self._avro else b"null"

    def step(self, name: str, step: Step, optional: bool = False, struct: int = 0) -> None:
        """``optional``: with Avro's mark of a value that is there, for numbers that have none of their own."""
        self._name(name)
        self._flush()
        self._steps.append((step, struct or optional, 0))

    def _flush(self) -> None:
        if self._literal:
            self._steps.append((Step.LITERAL, *self._program.literal(self._literal)))
        self._literal = b""

    def done(self) -> Steps:
        self._flush()
        return self._steps


def _framed(program: Program, side: OutlineSide, steps: Steps) -> Steps:
    head, tail = side.head(), side.tail
    framed = [(int(Step.LITERAL), *program.literal(text)) if text else None for text in (head, tail)]
    return [step for step in (framed[0], *steps, framed[1]) if step is not None]


def _steps(program: Program, steps: Steps) -> int:
    return program.add(len(steps), *(word for step in steps for word in step))


def _struct(
    program: Program,
    outline: Outline,
    side: OutlineSide,
    places: Sequence[ColumnPlace],
    optional: bool,
    legacy: bool,
    *,
    whole: bool,
) -> int:
    """A struct of columns; ``whole``: of a row, whose other columns stand in cells in the legacy format."""
    members: list[int] = []
    for place in places:
        assert place.value is not None, "a layout has the columns of its page"
        name = program.literal(b"" if side.avro else named(place.name, bool(members)))
        members += (
            *name,
            *_member(program, outline, side, place, legacy and whole and not place.column.is_key, legacy),
        )
    opening, closing = (b"\2" if optional else b"", b"") if side.avro else (b"{", b"}")
    return program.add(*program.literal(opening), *program.literal(closing), len(places), *members)


def _member(
    program: Program, outline: Outline, side: OutlineSide, place: ColumnPlace, in_cell: bool, legacy: bool
) -> tuple[int, ...]:
    type_, rules, avro = place.column.type, outline.rules, side.avro
    places = (place.value or 0, _at(place.deleted), _at(place.deleted_elements))
    if in_cell and is_multi_cell(type_):
        return (*_delta(program, outline, type_, avro), *places)
    node = program.value(type_, rules, avro) if legacy else program.column(type_, rules, avro)
    return (Form.CELL if in_cell else Form.BARE, node, 0, *places)


def _delta(program: Program, outline: Outline, type_: CqlType, avro: bool) -> tuple[int, int, int]:
    def value(part: CqlType) -> int:
        return program.value(part, outline.rules, avro)

    match type_:
        case SetType():
            element = value(type_.element)
            # Removed elements have no value: any node does.
            return Form.SET_DELTA, element, element
        case ListType():
            return Form.LIST_DELTA, value(_TIMEUUID), value(type_.element)
        case MapType():
            return Form.MAP_DELTA, value(type_.key), value(type_.value)
        case UserType():
            if len(type_.fields) > MOST_DELTA_FIELDS:
                raise Unsupported(f"a user type of more than {MOST_DELTA_FIELDS} fields")
            return Form.FIELDS_DELTA, value(type_), 0
        case _:
            raise Unsupported(f"deltas of {type_.cql()}")


def _never_empty(type_: CqlType) -> bool:
    return isinstance(type_, NativeType) and type_.name not in ("text", "ascii", "blob")


def _at(place: int | None) -> int:
    return -1 if place is None else place


def _long(value: int) -> bytes:
    """Avro's long, of a length."""
    made = bytearray()
    left = value << 1
    while left >= 0x80:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*made, left))
