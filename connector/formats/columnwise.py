"""Records straight from raw cells, a column of many rows at a time.

In: changes of one layout. Out: the bytes of their keys and values, equal byte for byte to what the table's plan and the
converters make of each. Those are the reference: they serve whenever this does not. It has no form for other options
(``columnwise`` is None), and raises at a cell that is not as cells usually are.
"""

from __future__ import annotations

from connector.changes import LogLayout
from connector.config import OutputConfig
from connector.formats.avro_columns import AvroColumns
from connector.formats.avro_converter import AvroConverter
from connector.formats.columns import Columns
from connector.formats.converter import Converter
from connector.formats.json_columns import JsonColumns
from connector.formats.json_converter import JsonConverter
from connector.formats.output_formats import record_format
from connector.formats.plan import RecordPlan, rules_of
from connector.formats.record import Schema
from connector.formats.record_format import Columnwise
from connector.formats.unwrapped import unwrapped
from smt import Unwrapping


def columnwise(
    layout: LogLayout,
    options: OutputConfig,
    plan: RecordPlan,
    key_converter: Converter,
    value_converter: Converter,
    unwrapping: Unwrapping | None = None,
) -> Columnwise | None:
    """The callable for a table, or None where it has no form for the options.

    The plan has the topic already that transforms send its records to. With an ``unwrapping`` it takes no deletes.
    """
    keys = _columns(key_converter, plan.topic, plan.key_schema, options)
    schema = plan.value_schema if unwrapping is None else unwrapping.schema
    values = _columns(value_converter, plan.topic, schema, options)
    if keys is None or values is None or not plan.key_schema or not plan.key_schema["fields"]:
        return None
    bare = frozenset[str]() if unwrapping is None else unwrapping.cells.get("after", frozenset())
    if bare and options.format != "legacy":
        # Only there are cells of ours: the field of a user type is none that may be taken out.
        return None
    if unwrapping is not None and unwrapping.rows:
        return unwrapped(layout, options, keys, values, unwrapping)
    return record_format(options.format).columnwise(layout, options, keys, values, bare)


def _columns(converter: Converter, topic: str, schema: Schema | None, options: OutputConfig) -> Columns | None:
    if isinstance(converter, JsonConverter):
        return JsonColumns(*converter.frame(schema), rules_of(options)) if converter.as_they_are(schema) else None
    if isinstance(converter, AvroConverter) and schema is not None and converter.as_they_are(schema):
        return AvroColumns(converter.head(topic, schema), rules_of(options))
    return None
