"""``ScyllaExtractNewRecordState``: an envelope becomes the row it describes.

In: ``ExtractOptions``. Out: a function from record to record, or to None where the record is dropped. What a record is
follows from its ``op``, never from which image is null: an update without images is an update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smt.envelope import (
    DELETED,
    NO_KEY,
    REMEDY,
    UNTOUCHED,
    WHOLE_ROWS,
    Row,
    key_fields,
    look_up,
    named_in_header,
    routed,
    taken,
)
from smt.errors import SmtRecordError
from smt.options import ExtractOptions, FieldReference
from smt.record import Header, Record
from smt.typed import TypedRows

Apply = Callable[[Record], Record | None]

_TEXT = {"type": "string", "optional": False}
_UPSERTS = frozenset("cur")
#: Truncations and logical messages have no row.
_ROWLESS = frozenset("tm")


def build_extract(options: ExtractOptions, *, schemaless_output: bool = False, unset: bool = False) -> Apply:
    """The transform that the options describe.

    ``schemaless_output``: records carry schemas on their way, but are written without (the connector's JsonConverter
    with ``schemas.enable=false``); only then may ``untouched.fields=omit`` meet a record with a schema. ``unset``: as
    ``TypedRows`` takes it.
    """
    on_tombstone = _tombstones(options)
    flatten = _flattener(options)
    upsert = _upsert(options, flatten)
    delete = _delete(options, flatten)
    typed = TypedRows(options, schemaless_output, unset)
    strict = options.strict

    def apply(record: Record) -> Record | None:
        value = record.value
        if value is None:
            return on_tombstone(record)
        if record.value_schema is not None:
            return typed.apply(record)
        if type(value) is not dict:
            return record
        try:
            op, after, before, source = value["op"], value["after"], value["before"], value["source"]
        except KeyError:
            return record
        if type(op) is not str or type(source) is not dict:
            return record
        if not (after is None or type(after) is dict) or not (before is None or type(before) is dict):
            return record
        if strict:
            # Java's reading: no image at all is a truncation, no `after` is a delete.
            if after is None and before is None:
                return None
            return upsert(record, value, after) if after is not None else delete(record, value, before)
        if op in _UPSERTS:
            return upsert(record, value, after)
        if op == "d":
            return delete(record, value, before)
        return None if op in _ROWLESS else record

    return apply


def _tombstones(options: ExtractOptions) -> Apply:
    if options.tombstones == "drop":
        return lambda record: None
    added = [Header(reference.name, "d", _TEXT) for reference in options.add_headers if reference.field == "op"]
    if not added:
        return lambda record: record

    def with_headers(record: Record) -> Record:
        headers = [*record.headers, *added]
        return Record(record.topic, record.key, None, headers, record.key_schema, record.value_schema)

    return with_headers


def _flattener(options: ExtractOptions) -> Callable[[Row, Mapping[str, Any]], Row]:
    """How a schemaless image becomes a row: cells of columns outside the key are unwrapped, always into a new dict."""
    if not options.unwrap_cells:
        return lambda image, key: dict(image)
    if options.omit_untouched:
        return lambda image, key: {
            name: cell["value"]
            if type(cell) is dict and len(cell) == 1 and "value" in cell and name not in key
            else cell
            for name, cell in image.items()
            if cell is not None or name in key
        }
    return lambda image, key: {
        name: cell["value"] if type(cell) is dict and len(cell) == 1 and "value" in cell and name not in key else cell
        for name, cell in image.items()
    }


def _upsert(
    options: ExtractOptions, flatten: Callable[[Row, Mapping[str, Any]], Row]
) -> Callable[[Record, Row, Row | None], Record]:
    rewrite = options.deletes == "rewrite"
    finish = _finisher(options, add_first=True)
    plain = finish is None

    def upsert(record: Record, value: Row, after: Row | None) -> Record:
        key = record.key
        if type(key) is not dict:
            key = NO_KEY
        if after is not None:
            row = flatten(after, key)
        elif key:
            row = dict(key)
        else:
            raise SmtRecordError(REMEDY)
        if rewrite:
            if DELETED in row:
                raise taken(DELETED)
            row[DELETED] = "false"
        if plain:
            return Record(record.topic, record.key, row, record.headers, record.key_schema, None)
        assert finish is not None
        return finish(record, value, row)

    return upsert


def _delete(
    options: ExtractOptions, flatten: Callable[[Row, Mapping[str, Any]], Row]
) -> Callable[[Record, Row, Row | None], Record | None]:
    if options.deletes == "drop":
        return lambda record, value, before: None
    finish = _finisher(options, add_first=False) or _unfinished
    if options.deletes != "rewrite":
        return lambda record, value, before: finish(record, value, None)

    def rewrite(record: Record, value: Row, before: Row | None) -> Record:
        key = key_fields(record)
        if before is not None:
            row = flatten(before, key)
        elif key:
            row = dict(key)
        else:
            raise SmtRecordError(REMEDY)
        if DELETED in row:
            raise taken(DELETED)
        row[DELETED] = "true"
        return finish(record, value, row)

    return rewrite


def _unfinished(record: Record, value: Row, row: Row | None) -> Record:
    return Record(record.topic, record.key, row, record.headers, record.key_schema, None)


def _finisher(options: ExtractOptions, *, add_first: bool) -> Callable[[Record, Row, Row | None], Record] | None:
    """Headers, routing, added and dropped fields, where any is asked for.

    As in Debezium, an upsert gets fields added before some are dropped, a delete the other way round.
    """
    if not (options.add_headers or options.add_fields or options.route_by_field or options.drop_fields_header):
        return None
    fields, header_refs, route = options.add_fields, options.add_headers, options.route_by_field
    drop_header, from_key = options.drop_fields_header, options.drop_fields_from_key

    if add_first and not (header_refs or route or drop_header):

        def only_add(record: Record, value: Row, row: Row | None) -> Record:
            if row is not None:
                _add(fields, value, row)
            return Record(record.topic, record.key, row, record.headers, record.key_schema, None)

        return only_add

    def finish(record: Record, value: Row, row: Row | None) -> Record:
        headers = record.headers
        if header_refs:
            headers = [*headers, *((ref.name, found[0]) for ref in header_refs if (found := look_up(ref, value)))]
        topic = routed(route, record, value, row) if route else record.topic
        key = record.key
        dropped = named_in_header(drop_header, record) if drop_header else ()
        if row is not None and add_first:
            _add(fields, value, row)
        for name in dropped:
            if row is not None:
                row.pop(name, None)
        if dropped and from_key and type(key) is dict:
            key = {name: part for name, part in key.items() if name not in dropped}
        if row is not None and not add_first:
            _add(fields, value, row)
        return Record(topic, key, row, headers, record.key_schema, None)

    return finish


def _add(references: tuple[FieldReference, ...], value: Row, row: Row) -> None:
    for reference in references:
        if reference.name in row:
            raise taken(reference.name)
        struct, field = reference.struct, reference.field
        parent = value if struct is None else value.get(struct)
        if type(parent) is dict and field in parent:
            row[reference.name] = parent[field]
        elif found := look_up(reference, value):
            row[reference.name] = found[0]


def losses_of(options: ExtractOptions, *, cells: bool, with_schemas: bool) -> tuple[str, ...]:
    """What the options lose, or do not do, each in one line, to be said once at start.

    ``cells``: whether records have cells at all. ``with_schemas``: rows are written with schemas, that is, whole.
    """
    found = []
    if options.drop_fields_from_key and not options.drop_fields_header:
        found.append("drop.fields.from.key has no effect without drop.fields.header.name, as in Java")
    if options.deletes == "drop" and options.tombstones == "drop":
        found.append(
            "deletes vanish: delete and tombstone records are both dropped (delete.handling.mode=drop, "
            "drop.tombstones=true); delete.tombstone.handling.mode=delete-to-tombstone keeps them"
        )
    elif options.deletes == "drop":
        found.append("delete records are dropped; only the tombstones of tombstones.on.delete=true show deletes")
    if cells and options.unwrap_cells and not options.omit_untouched:
        remedy = WHOLE_ROWS if with_schemas else "untouched.fields=omit keeps them apart"
        found.append(f"{UNTOUCHED} ({remedy})")
    if options.strict:
        found.append("compatibility=strict drops every record without images, updates and deletes among them")
    return tuple(found)
