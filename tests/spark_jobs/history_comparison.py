"""Rows of the model and of a landed view in one form, in which equal values are equal and others are not."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame

from connector.values.types import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType
from tests.spark_jobs.history_model import TableModel
from tests.spark_jobs.history_records import CLUSTERING, COLUMNS, as_json


def same(type_: CqlType, value: Any) -> Any:
    """A value, from the model or from Spark, in a form in which equal values are equal and others are not."""
    if value is None:
        return None
    if isinstance(type_, NativeType):
        if type_.name == "decimal":
            return Decimal(str(value)).normalize() + 0
        if type_.name == "double":
            return "nan" if math.isnan(value) else repr(value)
        return bytes(value) if type_.name == "blob" else str(value)
    if isinstance(type_, ListType | SetType):
        return [same(type_.element, item) for item in value]
    if isinstance(type_, MapType):
        return [(same(type_.key, item[0]), same(type_.value, item[1])) for item in value]
    if isinstance(type_, TupleType):
        return [same(kind, item) for kind, item in zip(type_.elements, value)]
    assert isinstance(type_, UserType)
    return [same(kind, item) for (_, kind), item in zip(type_.fields, value)]


def shown(type_: CqlType, value: Any) -> Any:
    """The model's value as Spark shows it."""
    if isinstance(type_, NativeType) and type_.name in ("inet", "timeuuid"):
        return as_json(type_, value)
    return value


def expected_rows(model: TableModel) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, place, values in model.rows():
        found[key, place] = {c.name: same(c.type, nested(c.type, values[c.name])) for c in COLUMNS}
    return found


def nested(type_: CqlType, value: Any) -> Any:
    if value is None or isinstance(type_, NativeType):
        return None if value is None else shown(type_, value)
    if isinstance(type_, ListType | SetType):
        return [nested(type_.element, item) for item in value]
    return value


def landed_rows(view: DataFrame, *more: str) -> dict[Any, Any]:
    """The rows of a landed view, by key and by what the further columns hold."""
    columns = [
        f"map_entries({c.name}) AS {c.name}"
        if isinstance(c.type, MapType)
        else f"unix_millis({c.name}) AS {c.name}"
        if c.type.cql() == "timestamp"
        else c.name
        for c in COLUMNS
    ]
    order = TableModel([(kind, desc) for _, kind, desc in CLUSTERING], COLUMNS).order
    found: dict[Any, Any] = {}
    for row in view.selectExpr("h", "p", "c", "d", *columns, *more).collect():
        place = None if row["c"] is None else order((Decimal(row["c"]), uuid.UUID(row["d"])))
        key = ((row["h"], repr(row["p"])), place, *(row[name] for name in more))
        assert key not in found
        found[key] = {c.name: same(c.type, row[c.name]) for c in COLUMNS}
    return found
