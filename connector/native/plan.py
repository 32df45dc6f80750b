"""A table's plan for the kernel: which rows of its log it takes, and what it writes of them.

In: an ``Outline``. Out: a ``KernelPlan``, whose words and text the kernel reads, or ``Unsupported``. The records are
those of the plan of ``connector.formats``, which is the reference; every branch here has its like there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from connector.changes import ColumnPlace, LogLayout
from connector.formats import Outline
from connector.native.envelope import envelope_steps, header_steps, row_steps, unseen
from connector.native.program import Program, Unsupported
from connector.native.steps import Step, Text, add_steps, framed
from connector.native.structs import Shape, at_or_none, struct_of
from connector.values import CqlType, NativeType

#: Beyond these a row's cells are many, or a record's headers, and nobody has measured what the kernel would win.
MOST_COLUMNS: Final = 2000
MOST_HEADERS: Final = 24
_IMAGES: Final = {"none": 0, "full": 1, "only-updated": 2}
#: In the place of the steps of deletes.
AS_OTHERS, NO_VALUE, NO_RECORD, PLAINLY = -1, -2, -3, -4
_TEXTS: Final = {"text": Text.TEXT, "ascii": Text.ASCII, "date": Text.DATE, "timestamp": Text.TIMESTAMP}


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """``numbers`` are those of the kernel's ``plan`` behind its two pointers, in its order."""

    words: tuple[int, ...]
    text: bytes
    numbers: tuple[int, ...]
    columns: int
    topic: str
    version: tuple[tuple[str, bytes | None], ...]
    headers: bool


def kernel_plan(outline: Outline) -> KernelPlan:
    """Asks a Schema Registry where values or keys are Avro: value first, as the plain way does."""
    layout, options = outline.layout, outline.options
    if len(layout.columns) > MOST_COLUMNS:
        raise Unsupported(f"more than {MOST_COLUMNS} columns")
    if outline.key is not None and not outline.key_places:
        raise Unsupported("a key without columns")
    legacy, strict = options.format == "legacy", options.strict
    program = Program()
    value_steps, delete_steps = _value_steps(program, outline)
    key_steps = -1
    if outline.key is not None:
        struct = struct_of(program, outline, outline.key, outline.key_places, Shape())
        key_steps = add_steps(program, framed(program, outline.key, [(Step.KEY, struct, 0)]))
    others = [place for place in layout.places if place.value is not None and not place.column.is_key]
    others.sort(key=lambda place: place.column.kind != "static")
    rows: list[int] = []
    for place in others:
        nothing = strict and _never_empty(place.column.type)
        rows += (place.value or 0, at_or_none(place.deleted), at_or_none(place.deleted_elements), nothing)
    keys = [place.value for place in layout.keys if place.value is not None]
    kinds = sum(bit for kind, bit in _kinds(layout) if kind not in options.skipped_operations)
    return KernelPlan(
        topic=outline.topic,
        version=tuple(outline.version),
        headers=bool(outline.version or outline.headers or outline.cells or outline.has_copies),
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
            options.tombstones and (outline.unwrapping is None or outline.unwrapping.keeps_tombstones),
            len(layout.clustering_key),
            _IMAGES[options.include_before],
            _IMAGES[options.include_after],
            options.preimages,
            program.add(len(keys), *keys),
            program.add(len(others), *rows),
            key_steps,
            value_steps,
            delete_steps,
            *_headers(program, outline),
            unseen(program, outline),
            sum(len(name) + len(text or b"") + 10 for name, text in outline.version),
            sum(place.column.kind == "static" for place in others),
            not strict,
        ),
        words=tuple(program.words),
        text=bytes(program.text),
    )


def _kinds(layout: LogLayout) -> tuple[tuple[str, int], ...]:
    return (("c", 1), ("u", 2), ("d", 4)) if layout.snapshot == "false" else (("r", 8),)


def _never_empty(type_: CqlType) -> bool:
    return isinstance(type_, NativeType) and type_.name not in ("text", "ascii", "blob")


def _value_steps(program: Program, outline: Outline) -> tuple[int, int]:
    """Of most records, and of deletes."""
    unwrapping = outline.unwrapping
    if unwrapping is None or not unwrapping.rows:
        return envelope_steps(program, outline), AS_OTHERS
    steps = row_steps(program, outline, of_deletes=False)
    if unwrapping.deletes == "drop":
        return steps, NO_RECORD
    if unwrapping.deletes != "rewrite":
        return steps, NO_VALUE
    if outline.value.avro:
        # Their schema has another name: it is registered when there is a delete, and not before.
        return steps, PLAINLY
    return steps, row_steps(program, outline, of_deletes=True)


def _headers(program: Program, outline: Outline) -> tuple[int, int]:
    """Those of records, and of tombstones: columns of the key, copies, and what is told of cells; -1: none."""
    keys, cells = (_columns(program, outline, columns) for columns in (outline.headers, outline.cells))
    unwrapping = outline.unwrapping
    if unwrapping is None or not outline.has_copies:
        at = _added(program, [*keys, *cells])
        return at, at
    made = [_copied(program, name, step) for name, step in header_steps(program, outline)]
    # Tombstones have lost what the others are copied from.
    delete = program.add(Step.LITERAL, *program.literal(b"d"))
    gone = [_copied(program, reference.name, delete) for reference in unwrapping.of_tombstones]
    return _added(program, [*keys, *made, *cells]), _added(program, [*keys, *gone])


def _added(program: Program, headers: Sequence[tuple[int, ...]]) -> int:
    if len(headers) > MOST_HEADERS:
        raise Unsupported(f"more than {MOST_HEADERS} headers")
    return program.add(len(headers), *chain.from_iterable(headers)) if headers else -1


def _columns(program: Program, outline: Outline, headers: Sequence[tuple[str, ColumnPlace]]) -> list[tuple[int, ...]]:
    made: list[tuple[int, ...]] = []
    for name, place in headers:
        type_ = place.column.type
        text = _TEXTS.get(type_.name, Text.OF_JSON) if isinstance(type_, NativeType) else Text.OF_JSON
        node = program.column(type_, outline.rules, False)
        made.append((_named(program, name), len(name), text, node, place.value or 0))
    return made


def _copied(program: Program, name: str, step: int) -> tuple[int, ...]:
    return _named(program, name), len(name), Text.OF_STEP, step, 0


def _named(program: Program, name: str) -> int:
    if "\0" in name:
        raise Unsupported("a name of a header that ends too early")
    return program.literal(name.encode() + b"\0")[0]
