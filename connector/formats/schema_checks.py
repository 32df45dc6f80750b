"""What a converter will refuse of a table's records, before there is one.

In: a table's description, the columns of its log, the output options. Out: for keys and values what is wrong.
"""

from __future__ import annotations

from connector.changes import TableDescription, layout_of
from connector.config import ConverterConfig, OutputConfig
from connector.formats.avro_names import REMEDY, AvroNames, refused_names
from connector.formats.avro_schema import avro_schema
from connector.formats.converter import Side
from connector.formats.output_formats import record_format
from connector.formats.record import Schema
from connector.formats.transforms import output_chain


def refused_schemas(
    description: TableDescription, log_columns: tuple[tuple[str, str], ...], options: OutputConfig
) -> list[tuple[Side, str]]:
    """Side and problem; nothing where transforms make schemas of their own, which only records show."""
    chain = output_chain(options)
    if "avro" not in (options.key_converter.kind, options.value_converter.kind) or not (chain is None or chain.routes):
        return []
    plan = record_format(options.format).plan(layout_of(description, log_columns), options)
    sides: tuple[tuple[Side, ConverterConfig, Schema | None], ...] = (
        ("key", options.key_converter, plan.key_schema),
        ("value", options.value_converter, plan.value_schema),
    )
    return [
        (side, problem)
        for side, converter, schema in sides
        if converter.kind == "avro" and schema is not None and (problem := _problem(schema, converter)) is not None
    ]


def _problem(schema: Schema, converter: ConverterConfig) -> str | None:
    names = AvroNames.of(converter)
    refused = refused_names(schema, names)
    if refused:
        listed = ", ".join(repr(name) for name in refused)
        return f"Avro does not allow {'the name' if len(refused) == 1 else 'the names'} {listed}: {REMEDY}"
    try:
        avro_schema(schema, converter.connect_meta_data, names)
    except ValueError as error:
        return str(error)
    return None
