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


def columnwise(
    layout: LogLayout, options: OutputConfig, plan: RecordPlan, key_converter: Converter, value_converter: Converter
) -> Columnwise | None:
    """The callable for a table, or None where the options ask for more than the plain form.

    Transforms are the caller's: there are none, or they only changed the topic, which the plan has already.
    """
    if plan.headers is not None:
        return None
    keys = _columns(key_converter, plan.topic, plan.key_schema, options)
    values = _columns(value_converter, plan.topic, plan.value_schema, options)
    if keys is None or values is None or not plan.key_schema or not plan.key_schema["fields"]:
        return None
    return record_format(options.format).columnwise(layout, options, keys, values)


def _columns(converter: Converter, topic: str, schema: Schema | None, options: OutputConfig) -> Columns | None:
    if isinstance(converter, JsonConverter):
        return JsonColumns(*converter.frame(schema), rules_of(options)) if converter.null_is_default else None
    if isinstance(converter, AvroConverter) and schema is not None:
        return AvroColumns(converter.head(topic, schema), rules_of(options))
    return None
