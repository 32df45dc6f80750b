"""The transforms in Spark: the flattening as Column expressions, without Python code per row, and any chain over JSON.

    flat = extract_new_state(decoded, {"delete.tombstone.handling.mode": "rewrite"})
    renamed = transform_records(of_kafka, {"transforms": "r", "transforms.r.type": "ReplaceField$Value", …})

In: DataFrames with the columns of Spark's Kafka source. Out: the rows that ``build_transform`` and ``build_chain`` give
for the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connector.step_defaults import FLATTEN, SAFE_EXTRACT
from smt.envelope import DELETED, REMEDY
from smt.errors import OptionProblem, SmtOptionError
from smt.options import ExtractOptions, FieldReference, parse_extract_options
from smt.record import Place
from smt.rows import RowTransform
from smt.transform import transform_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

#: Spark's structs have every field, so a field that was not touched can only be null.
_NO_OMIT = "omit is not possible in a struct; the row as a JSON text can have it: as_json=True"


def extract_new_state(
    df: DataFrame,
    options: Mapping[str, str] | None = None,
    *,
    type_name: str = "ScyllaExtractNewRecordState",
    as_json: bool = False,
) -> DataFrame:
    """``df`` with its envelopes flattened: ``value`` is the row, null for a tombstone; dropped records are gone.

    ``value`` is the envelope as a struct, of ``from_json`` or ``from_avro``, ``key`` a struct; ``topic`` and
    ``headers`` count where there are any. Records of other kinds (heartbeats) are dropped: the result's schema has no
    place for them.
    ``as_json``: ``value`` becomes a JSON text, in which fields may be left out.
    """
    kind = transform_type(type_name)
    if kind == FLATTEN:
        raise SmtOptionError([OptionProblem("", f"{FLATTEN} keeps the envelope", "transform_records")])
    parsed = parse_extract_options(options or {}, safe=kind == SAFE_EXTRACT)
    if parsed.omit_untouched and not as_json:
        raise SmtOptionError([OptionProblem("untouched.fields", _NO_OMIT, "null")])
    return _Extraction(df, parsed).result(as_json)


#: Headers as Spark's Kafka source and sink have them.
_HEADERS = "array<struct<key:string,value:binary>>"
_TRANSFORMED = "transformed_record"


def transform_records(df: DataFrame, properties: Mapping[str, str]) -> DataFrame:
    """``df`` after the chain that these lines of a connector's file name: ``transforms…``, ``predicates…``.

    ``key`` and ``value`` are JSON, with schemas or without, as bytes or texts; structs are taken as the JSON that
    ``to_json`` makes of them. ``headers``, ``topic``, ``partition``, ``offset`` and ``timestamp`` count where there are
    any. The result has the same columns, and ``key`` and ``headers``: dropped records are gone, structs are texts,
    bytes stay bytes. Python works on each row; a record that cannot be transformed fails the query.
    """
    from pyspark.sql import functions as f

    apply = RowTransform(properties)
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    for name in ("key", "value"):
        if kinds.get(name, "string") not in ("binary", "string") and not kinds[name].startswith("struct"):
            raise SmtOptionError(
                [OptionProblem("", f"the column {name} is a {kinds[name]}", "JSON, as bytes or a text")]
            )
    if "value" not in kinds:
        raise SmtOptionError([OptionProblem("", "the DataFrame has no column value", "those of Spark's Kafka source")])

    def given(name: str, kind: str) -> Column:
        if name not in kinds:
            return f.lit(None).cast(kind)
        if kinds[name].startswith("struct"):
            return f.to_json(name, {"ignoreNullFields": "false"})
        if kinds[name] == "timestamp":
            return f.unix_millis(name)
        return f.col(name).cast(kind)

    def row(topic: Any, key: Any, value: Any, headers: Any, partition: Any, offset: Any, timestamp: Any) -> Any:
        return apply(topic or "", key, value, headers, Place(partition, timestamp, offset))

    # Not deterministic for Spark, which else works once for the filter and once for each column.
    work = f.udf(row, f"struct<topic:string,key:string,value:string,headers:{_HEADERS}>").asNondeterministic()
    kept = {"topic": "string", "key": "string", "value": "string", "headers": _HEADERS}
    rest = {"partition": "int", "offset": "bigint", "timestamp": "bigint"}
    done = df.withColumn(_TRANSFORMED, work(*(given(name, kind) for name, kind in (kept | rest).items())))

    def result(name: str) -> Column:
        part = f.col(_TRANSFORMED)[name]
        return (part.cast("binary") if kinds.get(name) == "binary" else part).alias(name)

    chosen = [result(name) if name in kept else f.col(name) for name in kinds]
    chosen += [result(name) for name in ("headers", "key") if name not in kinds]
    return done.filter(f.col(_TRANSFORMED).isNotNull()).select(*chosen)


class _Extraction:
    """The expressions for one DataFrame's schema."""

    def __init__(self, df: DataFrame, options: ExtractOptions) -> None:
        from pyspark.sql import functions

        self.f: Any = functions
        self.df = df
        self.options = options
        self.envelope = _struct_of(df.schema["value"].dataType)
        self.key_names = _names(df.schema["key"].dataType) if "key" in df.columns else ()
        self.after = _struct_of(self.envelope["after"].dataType)
        self.before = _struct_of(self.envelope["before"].dataType)

    def result(self, as_json: bool) -> DataFrame:
        f, options = self.f, self.options
        value = f.col("value")
        op, after, before = value["op"], value["after"], value["before"]
        is_envelope = value.isNotNull() & op.isNotNull() & value["source"].isNotNull()
        if options.strict:
            upsert = is_envelope & after.isNotNull()
            delete = is_envelope & after.isNull() & before.isNotNull()
        else:
            upsert = is_envelope & op.isin("c", "u", "r")
            delete = is_envelope & (op == "d")
        kept = upsert if options.deletes == "drop" else upsert | delete
        if options.tombstones == "keep":
            kept = kept | value.isNull()
        columns = {name: f.col(name) for name in self.df.columns}
        columns["value"] = self._value(upsert, delete, as_json)
        if options.add_headers:
            given = columns.get("headers")
            added = self._headers(value.isNull())
            empty = f.array().cast(_HEADERS)
            columns["headers"] = added if given is None else f.concat(f.coalesce(given.cast(_HEADERS), empty), added)
        if options.route_by_field and "topic" in columns:
            columns["topic"] = self._topic(options.route_by_field, upsert, delete)
        if options.drop_fields_header:
            raise SmtOptionError(
                [
                    OptionProblem(
                        "drop.fields.header.name", "Each record may name others, but a DataFrame has one schema"
                    )
                ]
            )
        chosen = f.coalesce(kept, f.lit(False))
        return self.df.filter(chosen).select(*(column.alias(name) for name, column in columns.items()))

    def _value(self, upsert: Column, delete: Column, as_json: bool) -> Column:
        f = self.f
        row = self._as_json if as_json else self._as_struct
        result = f.when(upsert, row("after", self.after, "false"))
        if self.options.deletes == "rewrite":
            result = result.when(delete, row("before", self.before, "true"))
        return result

    def _columns(self, image: str, schema: StructType, deleted: str) -> list[tuple[str, Column, Column | None]]:
        """Name, value, and (where untouched can be told) whether the image has the column."""
        f, options = self.f, self.options
        whole = f.col("value")[image]
        found: list[tuple[str, Column, Column | None]] = []
        for field in schema.fields:
            name = field.name
            plain = whole[name]
            is_cell = options.unwrap_cells and name not in self.key_names and _is_cell(field.dataType)
            inner = plain["value"] if is_cell else plain
            if name in self.key_names:
                # Without an image the key tells what it knows.
                key_part = f.col("key")[name].cast(field.dataType)
                known = f.when(f.col("key").isNotNull(), key_part).otherwise(self._no_key(field.dataType))
                found.append((name, f.when(whole.isNull(), known).otherwise(inner), None))
            else:
                if not self.key_names and not found and not options.strict:
                    kind = _struct_of(field.dataType)["value"].dataType if is_cell else field.dataType
                    inner = f.when(whole.isNull(), self._no_key(kind)).otherwise(inner)
                found.append((name, inner, plain.isNotNull() if options.omit_untouched else None))
        if options.deletes == "rewrite":
            found.append((DELETED, f.lit(deleted), None))
        found += [(ref.name, column, None) for ref in options.add_fields if (column := self._look_up(ref)) is not None]
        return found

    def _no_key(self, kind: DataType) -> Column:
        column: Column = self.f.raise_error(self.f.lit(REMEDY)).cast(kind)
        return column

    def _as_struct(self, image: str, schema: StructType, deleted: str) -> Column:
        return self.f.struct(*(value.alias(name) for name, value, _ in self._columns(image, schema, deleted)))

    def _as_json(self, image: str, schema: StructType, deleted: str) -> Column:
        """Member by member, since ``to_json`` of a struct either keeps all nulls or none."""
        f = self.f
        members = []
        for name, value, touched in self._columns(image, schema, deleted):
            text = f.to_json(f.struct(value.alias(name)), {"ignoreNullFields": "false"})
            member = f.substring(text, f.lit(2), f.length(text) - 2)
            members.append(member if touched is None else f.when(touched, member))
        return f.concat(f.lit("{"), f.concat_ws(",", *members), f.lit("}"))

    def _look_up(self, reference: FieldReference) -> Column | None:
        value = self.f.col("value")
        if reference.struct is None:
            return value[reference.field] if reference.field in self.envelope.fieldNames() else None
        if reference.struct in self.envelope.fieldNames():
            parent = self.envelope[reference.struct].dataType
            if reference.field in _names(parent):
                return value[reference.struct][reference.field]
        return value[reference.field] if reference.field in self.envelope.fieldNames() else None

    def _headers(self, is_tombstone: Column) -> Column:
        f = self.f

        def header(name: str, text: Column) -> Column:
            column: Column = f.struct(f.lit(name).alias("key"), text.cast("binary").alias("value"))
            return column

        references = self.options.add_headers
        found = [(ref.name, self._look_up(ref)) for ref in references]
        of_change = f.array(*(header(name, column.cast("string")) for name, column in found if column is not None))
        of_tombstone = f.array(*(header(ref.name, f.lit("d")) for ref in references if ref.field == "op"))
        return f.when(is_tombstone, of_tombstone.cast(_HEADERS)).otherwise(of_change.cast(_HEADERS))

    def _topic(self, field: str, upsert: Column, delete: Column) -> Column:
        f = self.f
        topic = f.col("topic")
        candidates = []
        rewrite = self.options.deletes == "rewrite"
        for condition, image, schema in ((upsert, "after", self.after), (delete, "before", self.before)):
            if field in schema.fieldNames():
                plain = f.col("value")[image][field]
                wrapped = _is_cell(schema[field].dataType) and (self.options.unwrap_cells or not rewrite)
                text = plain["value"] if wrapped else plain
                candidates.append(f.when(condition, text.cast("string")))
        if field in self.key_names:
            candidates.append(f.when(upsert | delete, f.col("key")[field].cast("string")))
        usable = [f.when(f.trim(text) != "", text) for text in candidates]
        return f.coalesce(*usable, topic)


def _struct_of(kind: DataType) -> StructType:
    from pyspark.sql.types import StructType

    if not isinstance(kind, StructType):
        raise SmtOptionError([OptionProblem("", "value must be a struct: decode it first", "from_json or from_avro")])
    return kind


def _names(kind: DataType) -> tuple[str, ...]:
    from pyspark.sql.types import StructType

    return tuple(kind.fieldNames()) if isinstance(kind, StructType) else ()


def _is_cell(kind: DataType) -> bool:
    return _names(kind) == ("value",)
