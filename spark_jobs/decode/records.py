"""Kafka records to changelog rows: typed cells, identities and tie keys made once, bad records with their reason.

In: a micro-batch (key, value, topic, partition, offset, timestamp) and a ``Layout``. Out: a frame with the changelog's
columns; a record that cannot be landed is a row of the dead segment with its raw bytes. The value is parsed once per
plan: it stands behind a generator, since Spark would repeat the parser for every filter and column that uses it.
Records that say by which version of the table they were made are read by that version (``record_versions``).
A row of a snapshot whose cells end at different times becomes as many rows, a write each (``cell_ttls``).
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from connector.values import CqlType
from spark_jobs.decode.avro_records import Registry, with_avro_text
from spark_jobs.decode.bad_records import reason_of
from spark_jobs.decode.cell_ttls import NO_PART, in_part, parts_of, ttl_of_part
from spark_jobs.decode.record_schema import key_is_wrapped, known_fields, record_key_type, record_type
from spark_jobs.decode.record_versions import by_versions, is_own, kafka_ms
from spark_jobs.functions import DECIMAL, elements_sql, is_blob, order_sql, tie_sql, unknown_inside
from spark_jobs.model import (
    DEAD,
    PARTITION,
    ROW,
    TTL,
    DeadReason,
    Key,
    Layout,
    Stored,
    adapted,
    as_stored,
    bucket_of,
    changelog_columns,
    literal,
    noted_headers,
    order_key,
    out_of_range,
    quoted,
    reason_sql,
    stored_type,
    struct_of,
    text_value,
)
from spark_jobs.named_frames import over_frame

_RAW = "topic, partition, offset, kafka_ms, raw_key, raw_value, made_by, cell_ttls"
BATCH = "scylla_cdc_batch"
# Jackson takes no text of more than 20,000,000 characters, unless it is told to.
_STRICT_JSON = "map('columnNameOfCorruptRecord', '_corrupt', 'mode', 'PERMISSIVE', 'maxStringLen', '2147483647')"


def decoded_json(
    batch: DataFrame, layout: Layout, segment: int, range_topic: str, with_schemas: bool = False
) -> DataFrame:
    """The changelog rows of a batch of JSON records."""
    text = batch.where("value IS NOT NULL").selectExpr("*", "CAST(value AS string) AS text")
    if layout.images:
        text = text.selectExpr("*", "CAST(key AS string) AS key_text")
    read = partial(
        _read, segment=segment, range_topic=range_topic, wrapped=with_schemas, struct_bounds=with_schemas, unnamed=None
    )
    return by_versions(text, layout, read)


def decoded_avro(batch: DataFrame, layout: Layout, segment: int, range_topic: str, registry: Registry) -> DataFrame:
    """The changelog rows of a batch of Avro records."""
    text, unnamed = with_avro_text(batch.where("value IS NOT NULL"), registry)
    if layout.images:
        text, _ = with_avro_text(text, registry, "key")
    read = partial(_read, segment=segment, range_topic=range_topic, wrapped=False, struct_bounds=True, unnamed=unnamed)
    return by_versions(text, layout, read)


def _read(
    batch: DataFrame,
    layout: Layout,
    *,
    segment: int,
    range_topic: str,
    wrapped: bool,
    struct_bounds: bool,
    unnamed: str | None,
) -> DataFrame:
    inner = record_type(layout, struct_bounds)
    envelope = f"struct<payload:{inner}>" if wrapped else inner
    parser = (
        f"from_json(concat('{{\"e\":', text, ',\"z\":1}}'), {literal(f'e {envelope}, z int, _corrupt string')}, "
        f"{_STRICT_JSON})"
    )
    unknown = _unknown(layout, "$.payload.after" if wrapped else "$.after")
    e = "p.e.payload" if wrapped else "p.e"
    broken = reason_sql(
        (f"NOT {is_own(layout)}", DeadReason.NO_DEFINITION),
        ("length(raw_value) = 0", DeadReason.EMPTY),
        *([(unnamed, DeadReason.UNKNOWN_SCHEMA)] if unnamed else []),
        ("NOT is_valid_utf8(text)", DeadReason.NOT_UTF8),
        ("p IS NULL OR p._corrupt IS NOT NULL", DeadReason.CORRUPT),
        ("p.z IS NULL", DeadReason.TRAILING),
        (f"{e} IS NULL", DeadReason.NULL_ENVELOPE),
    )
    source = batch.selectExpr(
        "topic",
        "partition",
        "offset",
        f"{kafka_ms(layout)} AS kafka_ms",
        "made_by",
        "key AS raw_key",
        "value AS raw_value",
        "text",
        "cell_ttls",
        *(["key_text"] if layout.images else []),
    )
    parsers = [("p", parser)]
    if layout.images:
        # Only the key says which row a delete without its image is about.
        parsers.append(("k", f"from_json(key_text, {literal(record_key_type(layout))})"))
    made = [*parsers, ("part", NO_PART)]
    rows = f"array({struct_of(made)})"
    if not layout.images:
        # An image says of no cell whether the change wrote it.
        rows = f"CASE WHEN cell_ttls IS NULL THEN {rows} ELSE {parts_of(parsers)} END"
    parsed = (
        f"SELECT {_RAW}, {e} AS e, {broken} AS broken, {unknown} AS unknown{', k' if layout.images else ''}, part "
        f"FROM {BATCH} LATERAL VIEW inline_outer({rows}) AS {', '.join(n for n, _ in made)}"
    )
    return _changes(source, parsed, layout, segment, range_topic, struct_bounds)


def _unknown(layout: Layout, path: str) -> str:
    """Whether the record has a field that no known version of its table has. One that names such a version has none,
    and is not looked through: parsing it once more is dearer than all else that is done with it."""
    keys = f"json_object_keys(get_json_object(text, '{path}'))"
    known = ", ".join(literal(name) for name in known_fields(layout))
    unknown = f"coalesce(exists({keys}, name -> name NOT IN ({known})), false)"
    told = f"coalesce(made_by IN ({', '.join(map(literal, layout.versions))}), false)" if layout.versions else "false"
    if (inside := unknown_inside(layout, f"CASE WHEN NOT {told} THEN text END")) is not None:
        unknown = f"({unknown} OR {inside})"
    return f"CASE WHEN {told} THEN false ELSE {unknown} END"


def _changes(
    source: DataFrame, parsed: str, layout: Layout, segment: int, range_topic: str, struct_bounds: bool
) -> DataFrame:
    fields = _fields(layout, struct_bounds, range_topic)
    flat = f"SELECT {_RAW}, broken, unknown, part, {', '.join(fields)} FROM ({parsed}) AS parsed"
    typed = f"SELECT *, {_identities(layout)} {reason_of(layout)} AS reason FROM ({flat}) AS flat"
    kinds = changelog_columns(layout)
    blank = {name: f"CAST(NULL AS {kinds[name]})" for name in _no_longer_written(layout) & kinds.keys()}
    made = {**_in_parts(layout), **_final(layout, segment), **blank}
    columns = [f"{made.get(name) or quoted(name)} AS {quoted(name)}" for name in kinds]
    where = ""
    if layout.older_tables and (created := layout.definition.created_ms) is not None:
        # What cannot be read of an older table of this name is nobody's loss.
        where = f" WHERE reason IS NULL OR kafka_ms >= {created}L"
    return over_frame(source, BATCH, f"SELECT {', '.join(columns)} FROM ({typed}) AS typed{where}")


def _final(layout: Layout, segment: int) -> dict[str, str]:
    """The changelog's columns that no reader of a record's fields has made."""
    # Of a record that cannot be landed one part is the letter. The others go to the dead segment as well, and say
    # nothing: to leave them out, Spark would look for the reason twice, and most of decoding is looking for it.
    letter = "reason IS NOT NULL" + ("" if layout.images else " AND NOT coalesce(part.more, false)")
    return {
        "segment": _looked_up(str(segment), str(DEAD)),
        "bucket": bucket_of(layout),
        "landed_at": _looked_up("current_timestamp()", "current_timestamp()"),
        "reason": f"CASE WHEN {letter} THEN reason END",
        "raw_key": f"CASE WHEN {letter} THEN raw_key END",
        "raw_value": f"CASE WHEN {letter} THEN raw_value END",
        "note": f"CASE WHEN {letter} THEN {noted_headers()} END",
    }


def _looked_up(landed: str, dead: str) -> str:
    """Of what differs from batch to batch. A number stands in the code that Spark makes of a plan: each batch would be
    compiled anew, and run uncompiled by Java. What an array holds does not, it is given to that code."""
    return f"get(array({landed}, {dead}), CAST(reason IS NOT NULL AS int))"


def _in_parts(layout: Layout) -> dict[str, str]:
    """What a column of the changelog has in each part of its record. Whether a record can be landed is told by all of
    it, so nothing is left out of a part before that."""
    if layout.images:
        return {}
    return {
        name: in_part(column.name, stored, quoted(name))
        for column, stored in layout.recorded
        for name in _written(layout, stored)
    }


def _written(layout: Layout, stored: Stored) -> list[str]:
    """The changelog's columns of a recorded one."""
    match stored.role:
        case "cell":
            return [stored.value]
        case "fields":
            return [stored.tombstone, *(part.value for _, part in layout.field_cells(stored))]
        case _:
            return [stored.elements]


def _no_longer_written(layout: Layout) -> set[str]:
    """Changelog columns of types that a column had before: kept for what is landed, no record fills them."""
    written = {stored for _, stored in layout.recorded}
    for _, stored in layout.recorded:
        if stored.role == "fields":
            written.update(part for _, part in layout.field_cells(stored))
    gone = [stored for stored in layout.physical if stored not in written]
    names = {name for stored in gone for name in (stored.value, stored.elements, stored.tombstone)}
    return names | {name for key in layout.keys for place in key.follows for name in (place.value, place.identity)}


def _fields(layout: Layout, struct_bounds: bool, range_topic: str) -> list[str]:
    ranged = f"topic = {literal(range_topic)}"
    operation = _row_operation(layout)
    if layout.clustering:
        by_kind = "CASE e.kind WHEN 'range' THEN 'r' WHEN 'partition' THEN 'd' END"
        operation = f"CASE WHEN {ranged} THEN {by_kind} ELSE {operation} END"
    ttl = "CAST(NULL AS bigint)" if layout.images else ttl_of_part(layout)
    fields = ["e.source.ts_us AS ts", f"{ttl} AS {TTL}", f"{operation} AS op"]
    has_row = "CASE e.op WHEN 'd' THEN e.before IS NOT NULL ELSE e.after IS NOT NULL END"
    if layout.images:
        has_row = f"({has_row} OR k IS NOT NULL)"
    if layout.clustering:
        bounded = "(e.kind = 'partition' OR (e.start IS NOT NULL AND e.end IS NOT NULL))"
        has_row = f"CASE WHEN {ranged} THEN e.partition IS NOT NULL AND {bounded} ELSE {has_row} END"
        for side in ("start", "end"):
            bound = _bound(layout, side, struct_bounds)
            fields.append(f"CASE WHEN {ranged} AND e.kind = 'range' THEN {bound} END AS {side}_bound")
    fields.append(f"{has_row} AS has_row")
    for key in layout.keys:
        fields.append(f"{_as_current(key, _key_value(layout, key, ranged))} AS {quoted(key.value)}")
    no_clustering = " AND ".join(f"{_key_value(layout, key, ranged)} IS NULL" for key in layout.clustering)
    kind = str(ROW)
    if layout.clustering:
        kind = f"CASE WHEN {ranged} OR ({no_clustering}) THEN {PARTITION} ELSE {ROW} END"
    fields.append(f"{kind} AS kind")
    ranges: list[str] = []
    for column, stored in layout.recorded:
        source = f"e.after.{quoted(column.name)}"
        value = source if layout.images else f"{source}.value"
        ranges += _cannot_show(layout, column.name, stored, value)
        fields += _column(layout, stored, source, no_clustering, column.kind == "static")
    for key in layout.keys:
        was = key.recorded or key.type
        ranges += not_fitting(was, _key_value(layout, key, ranged), layout.declared.get(key.name))
    fields.append(f"coalesce({' OR '.join(ranges) or 'false'}, false) AS out_of_range")
    return fields


def _row_operation(layout: Layout) -> str:
    """What a record does to its row. One of a snapshot says all of it, as an insert of every cell would; what is static
    has nothing to be inserted."""
    written = "'c'"
    if layout.clustering:
        static = " AND ".join(f"{_key_value(layout, key, 'false')} IS NULL" for key in layout.clustering)
        written = f"CASE WHEN {static} THEN 'u' ELSE 'c' END"
    return f"CASE WHEN part.more THEN 'u' WHEN e.op = 'r' THEN {written} ELSE e.op END"


def _cannot_show(layout: Layout, column: str, stored: Stored, value: str) -> list[str]:
    """Conditions under which a reader's type cannot hold what a record writes to a column."""
    if stored.role == "cell":
        return not_fitting(stored.type, value, layout.declared.get(column))
    if stored.role == "fields":
        return [
            text
            for name, part in layout.field_cells(stored)
            for text in not_fitting(part.type, f"{value}.elements.{quoted(name)}.value", None)
        ]
    parts = [(stored.element_key, "e.key"), (stored.element_value, "e.value")]
    found = [text for kind, sql in parts if kind is not None for text in not_fitting(kind, sql, None)]
    return [f"exists({value}.elements, e -> {' OR '.join(found)})"] if found else []


def not_fitting(type_: CqlType, value: str, declared: str | None) -> list[str]:
    """Conditions under which a reader's type cannot hold a value."""
    if declared is None:
        return [text for text in [out_of_range(type_, value, 1)] if text]
    if declared == "bigint":
        return []
    fitted = shown_as(value, declared)
    same = f"{order_sql(DECIMAL, value)} = {order_sql(DECIMAL, f'CAST({fitted} AS string)')}"
    return [f"({value} IS NOT NULL AND ({fitted} IS NULL OR NOT {same}))"]


def shown_as(value: str, declared: str) -> str:
    """A number's text as a declared decimal shows it; null if it is none of those.

    To round 1E-10000000, Spark makes all of its digits, for 40 s. No number that fits has such an exponent.
    """
    return f"try_cast(CASE WHEN NOT {value} RLIKE '[eE][-+]?[0-9]{{4}}' THEN {value} END AS {declared})"


def _as_current(key: Key, value: str) -> str:
    """A key's value as records have it, as it is stored now: its type may have been another one then."""
    was = key.recorded or key.type
    stored = as_stored(was, value)
    if was == key.type:
        return stored
    if is_blob(key.type):
        return tie_sql(was, value)
    return adapted(was, key.type, stored) or f"CAST(NULL AS {stored_type(key.type)})"


def _key_value(layout: Layout, key: Key, ranged: str) -> str:
    places = [f"e.{part}.{quoted(name)}" for name in key.names for part in ("after", "before")]
    if layout.images:
        roots = ["k.payload", "k"] if key_is_wrapped(layout) else ["k"]
        places += [f"{root}.{quoted(name)}" for name in key.names for root in roots]
    if layout.clustering and not key.clustering:
        places += [f"e.partition.{quoted(name)}" for name in key.names]
    return f"coalesce({', '.join(places)})"


def _bound(layout: Layout, side: str, struct_bounds: bool) -> str:
    """Order keys of the bound's prefix, its length, and whether the bound itself is inside."""
    values = f"e.{side}.values"
    length = f"e.{side}.length" if struct_bounds else f"size({values})"
    keys: list[tuple[str, str]] = []
    for index, key in enumerate(layout.clustering):
        if struct_bounds:
            value = f"coalesce({', '.join(f'{values}.{quoted(name)}' for name in key.names)})"
        else:
            value = text_value(key.recorded or key.type, f"get({values}, {index})")
        value = _as_current(key, value) if key.recorded not in (None, key.type) else value
        keys.append((f"o{index}", order_key(key.type, value, order_sql(key.type, value))))
    return struct_of([("o", struct_of(keys)), ("l", length), ("i", f"e.{side}.inclusive")])


def _column(layout: Layout, stored: Stored, source: str, no_clustering: str, static: bool) -> list[str]:
    """The changelog columns of one recorded column; null where the record does not touch it."""
    if layout.images:
        # Without an image a change has left nothing of the row.
        own = "e.op <> 'd'"
        if no_clustering:
            own += f" AND {'' if static else 'NOT '}({no_clustering})"
        return [f"CASE WHEN {own} THEN {_cell(stored, source)} END AS {quoted(stored.value)}"]
    if stored.role == "cell":
        cell = _cell(stored, f"{source}.value")
        return [f"CASE WHEN {source} IS NOT NULL THEN {cell} END AS {quoted(stored.value)}"]
    overwritten = f"coalesce({source}.value.mode, 'overwrite') = 'overwrite'"
    if stored.role == "fields":
        columns = [f"CASE WHEN {source} IS NOT NULL THEN {overwritten} END AS {quoted(stored.tombstone)}"]
        for name, part in layout.field_cells(stored):
            field = f"{source}.value.elements.{quoted(name)}"
            cell = _cell(part, f"{field}.value")
            columns.append(f"CASE WHEN {field} IS NOT NULL THEN {cell} END AS {quoted(part.value)}")
        return columns
    made = struct_of([("o", overwritten), ("e", elements_sql(stored, f"{source}.value.elements"))])
    return [f"CASE WHEN {source} IS NOT NULL THEN {made} END AS {quoted(stored.elements)}"]


def _cell(stored: Stored, value: str) -> str:
    fields = [("v", as_stored(stored.type, value))]
    if stored.tie:
        fields.append(("x", tie_sql(stored.type, value)))
    return struct_of(fields)


def _identities(layout: Layout) -> str:
    """Identity columns that differ from the key's own value, and a range's bounds; each ends with a comma."""
    made = ""
    for key in layout.keys:
        if key.identity != key.value:
            made += f"{made_identity(key, quoted(key.value))} AS {quoted(key.identity)}, "
    if layout.clustering:
        bounds = struct_of([("s", "start_bound"), ("e", "end_bound")])
        made += f"CASE WHEN start_bound IS NOT NULL THEN {bounds} END AS {quoted(layout.bounds)}, "
    return made


def made_identity(key: Key, value: str) -> str:
    """What a key's value is found by."""
    match key.identity_kind:
        case "text":
            return f"CAST({value} AS string)"
        case "tie":
            return tie_sql(key.type, value)
        case "order":
            return order_sql(key.type, value)
        case _:
            return value
