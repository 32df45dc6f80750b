"""Which columns a published table gets while it stays the table that it is."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from spark_jobs.sinks import new_columns

NUMBER, TEXT = IntegerType(), StringType()


def of(nullable: bool = True, **fields: DataType) -> StructType:
    return StructType([StructField(name, kind, nullable) for name, kind in fields.items()])


def test_what_is_there_and_what_only_its_nulls_are_told_of_differently_is_not_new() -> None:
    there = of(id=NUMBER, a=of(x=NUMBER), l=ArrayType(of(x=NUMBER), True))
    wanted = of(False, id=NUMBER, a=of(False, x=NUMBER), l=ArrayType(of(x=NUMBER), False))
    assert new_columns(there, wanted) == of()
    assert new_columns(there, of(id=NUMBER, v=TEXT, a=of(x=NUMBER), l=ArrayType(of(x=NUMBER)))) == of(v=TEXT)


@pytest.mark.parametrize(
    "within", [lambda kind: kind, ArrayType, lambda kind: of(f=kind), lambda kind: MapType(TEXT, ArrayType(kind))]
)
def test_a_user_type_that_has_got_fields_is_the_same_column(within: type[ArrayType]) -> None:
    before, after = within(of(x=NUMBER)), within(of(x=NUMBER, y=TEXT))
    assert new_columns(of(id=NUMBER, u=before), of(id=NUMBER, u=after)) == of(u=after)
    assert new_columns(of(id=NUMBER, u=after), of(id=NUMBER, u=before)) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (NUMBER, TEXT),
        (NUMBER, LongType()),
        (of(x=NUMBER), of(y=NUMBER, x=NUMBER)),
        (of(x=NUMBER), of(x=TEXT, y=NUMBER)),
        (of(x=NUMBER), ArrayType(NUMBER)),
        (MapType(of(x=NUMBER), TEXT), MapType(of(x=NUMBER, y=NUMBER), TEXT)),
    ],
    ids=["text", "wider", "another place", "another type", "another kind", "keys of a map"],
)
def test_a_column_of_another_type_makes_another_table(before: DataType, after: DataType) -> None:
    assert new_columns(of(u=before), of(u=after)) is None
    assert new_columns(of(u=before), of(v=after)) is None
