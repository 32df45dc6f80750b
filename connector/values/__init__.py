"""CQL types, their raw bytes, their order and their rendering in records.

In: type spellings as ``system_schema`` has them, raw cells as the native protocol carries them (``bytes``;
``None`` is CQL's null). Out: ``CqlType`` values, Python values, sort keys, JSON text. Pure. Whatever is
malformed raises ``ValueError``: callers that know the table and the column turn it into ``PoisonRow``.
"""

from __future__ import annotations

from connector.java_calendar import days_as_julian, gregorian_date, java_date
from connector.java_numbers import Float32, WideDouble, is_plain, java_double, java_float
from connector.values.big_numbers import decimal_of, whole_number
from connector.values.binary import (
    Duration,
    decode,
    decoder,
    encode,
    encoder,
    fixed_size,
    split_cells,
    split_fields,
    split_vector,
)
from connector.values.ordering import OrderKey, order_key
from connector.values.rendering import Render, RenderingRules, column_renderer, render_uuid, renderer
from connector.values.scalars import encode_vint
from connector.values.types import (
    NATIVE_NAMES,
    ByNative,
    CqlType,
    ListType,
    MapType,
    MultiCellType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    freeze,
    is_multi_cell,
    native,
    parse_type,
)

__all__ = [
    "NATIVE_NAMES",
    "ByNative",
    "CqlType",
    "Duration",
    "Float32",
    "ListType",
    "MapType",
    "MultiCellType",
    "NativeType",
    "OrderKey",
    "Render",
    "RenderingRules",
    "SetType",
    "TupleType",
    "UserType",
    "VectorType",
    "WideDouble",
    "column_renderer",
    "days_as_julian",
    "decimal_of",
    "decode",
    "decoder",
    "encode",
    "encode_vint",
    "encoder",
    "fixed_size",
    "freeze",
    "gregorian_date",
    "is_multi_cell",
    "is_plain",
    "java_date",
    "java_double",
    "java_float",
    "native",
    "order_key",
    "parse_type",
    "render_uuid",
    "renderer",
    "split_cells",
    "split_fields",
    "split_vector",
    "whole_number",
]
