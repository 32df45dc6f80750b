"""Values of records for the kernel: whole envelopes, or the rows that a transform leaves of them.

In: an ``Outline``. Out: where in a program their steps stand.
"""

from __future__ import annotations

from typing import Final

from connector import __version__
from connector.formats import Outline, OutlineSide
from connector.native.program import Program, Unsupported
from connector.native.steps import Copy, Step, Written, add_steps, framed
from connector.native.structs import Shape, struct_of

_OF_SOURCE: Final = {
    "ts_ms": Step.SOURCE_MS,
    "ts_us": Step.SOURCE_US,
    "ts_ns": Step.SOURCE_NS,
    "stream_id": Step.STREAM_ID,
    "time": Step.TIME_ID,
    "batch_seq_no": Step.SEQUENCE_NUMBER,
    "operation": Step.OPERATION,
    "ttl": Step.TTL,
}
_NEVER: Final = frozenset(("sequence", "transaction", "id", "total_order", "data_collection_order"))


def envelope_steps(program: Program, outline: Outline) -> int:
    """Steps of the value of a record."""
    options, side, cells = outline.options, outline.value, _cells(outline)
    written = Written(program, side.avro)
    written.struct("source")
    for field in _source_fields(outline):
        _put_source(written, outline, field)
    written.close()
    for name, step, places in (("before", Step.BEFORE, outline.before), ("after", Step.AFTER, outline.after)):
        shape = Shape(optional=True, whole=True, without_cell=cells.get(name, frozenset()))
        written.step(name, step, struct=struct_of(program, outline, side, places, shape))
    if options.format != "legacy" and "payload-key" in options.key_placement:
        key = struct_of(program, outline, side, outline.key_places, Shape())
        written.step(options.payload_key_name, Step.KEY, struct=key)
    for field in ("op", "ts_ms", "transaction", "ts_us", "ts_ns"):
        _put_own(written, outline, field)
    written.close()
    return add_steps(program, framed(program, side, written.done()))


def row_steps(program: Program, outline: Outline, *, of_deletes: bool) -> int:
    """Steps of the row that is left of an envelope; of a record without an image, of the columns of its key."""
    unwrapping = outline.unwrapping
    assert unwrapping is not None
    if unwrapping.omits and outline.options.format != "legacy":
        raise Unsupported("columns that are left out for being null, as nobody can tell whether they were written")
    image, places = ("before", outline.before) if of_deletes else ("after", outline.after)
    side: OutlineSide | None = outline.deleted if of_deletes else outline.value
    if side is None:
        raise Unsupported("rows of deletes without a schema")
    cells = _cells(outline)[image]
    shape = Shape(whole=True, without_cell=cells, bare=True, omits=unwrapping.omits)
    written = Written(program, side.avro)
    step = Step.BEFORE_OR_KEY if of_deletes else Step.AFTER_OR_KEY
    written.follow(step, struct_of(program, outline, side, places, shape), bool(places), outline.key is not None)
    if unwrapping.marked is not None:
        written.text(unwrapping.marked, "true" if of_deletes else "false", b"\2")
    for reference in unwrapping.added:
        _put_copy(written, outline, reference.struct, reference.field, reference.name)
    written.close()
    return add_steps(program, framed(program, side, written.done()))


def header_steps(program: Program, outline: Outline) -> list[tuple[str, int]]:
    """Copies that stand in headers: their names, and where their steps are; -1 for null."""
    found = []
    for reference in outline.unwrapping.headers if outline.unwrapping is not None else ():
        copy = Copy(program)
        _put_copy(copy, outline, reference.struct, reference.field, reference.name)
        steps = copy.done()
        found.append((reference.name, program.add(*steps[0]) if steps else -1))
    return found


def unseen(program: Program, outline: Outline) -> int:
    """Images before, where only the row after a change is left; -1 where they are seen."""
    if outline.unwrapping is None or not outline.unwrapping.rows:
        return -1
    return struct_of(program, outline, outline.value, outline.before, Shape(optional=True, whole=True))


def _cells(outline: Outline) -> dict[str, frozenset[str]]:
    return {} if outline.unwrapping is None else outline.unwrapping.cells


def _source_texts(outline: Outline) -> dict[str, str]:
    description = outline.layout.description
    return {
        "version": __version__,
        "connector": "scylla",
        "name": outline.options.topic_prefix,
        "snapshot": outline.layout.snapshot,
        "db": description.keyspace,
        "keyspace_name": description.keyspace,
        "table_name": description.name,
    }


def _source_fields(outline: Outline) -> tuple[str, ...]:
    usual = ("version", "connector", "name", "ts_ms", "snapshot", "db", "sequence", "ts_us", "ts_ns")
    metadata = ("stream_id", "time", "batch_seq_no", "operation", "ttl") if outline.options.metadata else ()
    return (*usual, "keyspace_name", "table_name", *metadata)


def _put_source(written: Written, outline: Outline, field: str, name: str | None = None) -> None:
    """A field of the source, or, with another ``name``, its optional copy in a row."""
    copied, texts = name is not None, _source_texts(outline)
    if field in _NEVER or (copied and field == "snapshot" and texts[field] == "false"):
        # A default that stands where nobody has set anything is not copied.
        written.null(name or field)
    elif field in texts:
        # Of the one field with a default the branches stand the other way round.
        mark = b"\2" if copied else b"\0" if field == "snapshot" else b""
        written.text(name or field, texts[field], mark)
    else:
        written.step(name or field, _OF_SOURCE[field], optional=copied or field != "ts_ms")


def _put_own(written: Written, outline: Outline, field: str, name: str | None = None) -> None:
    """A field of the envelope itself."""
    clock = {"ts_ms": Step.NOW_MS, "ts_us": Step.NOW_US, "ts_ns": Step.NOW_NS}
    if field == "op":
        written.step(name or field, Step.KIND)
    elif field in _NEVER or (field != "ts_ms" and field in clock and outline.options.format != "legacy"):
        # The Java connector leaves two times null in the advanced format.
        written.null(name or field)
    elif field in clock:
        written.step(name or field, clock[field], optional=True)
    else:
        raise Unsupported(f"a copy of {field}")


def _put_copy(written: Written, outline: Outline, struct: str | None, field: str, name: str) -> None:
    if struct == "source" and field in _source_fields(outline):
        _put_source(written, outline, field, name)
    elif struct in (None, "source", "transaction"):
        _put_own(written, outline, field, name)
    else:
        raise Unsupported(f"a copy of {struct}.{field}")
