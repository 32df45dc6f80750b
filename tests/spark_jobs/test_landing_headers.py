"""What a record's headers say of it, wherever they stand among others."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.decode import CELL_TTLS, MADE_BY

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "planned_once")]

TABLE, VERSION, TTLS = ("scylla.table.id", b"T"), ("scylla.schema.version", b"V"), ("scylla.cell.ttls", b'{"v": 1}')
OTHER = ("trace", b"x")


@pytest.mark.parametrize(
    ("headers", "made_by", "cell_ttls"),
    [
        ([TABLE, VERSION], "T V", None),
        ([TABLE, VERSION, TTLS], "T V", '{"v": 1}'),
        ([VERSION, TABLE], "T V", None),
        ([OTHER, TABLE, VERSION], "T V", None),
        ([TABLE, OTHER, VERSION, OTHER], "T V", None),
        ([TABLE, VERSION, TABLE], "T V", None),
        ([TTLS], None, '{"v": 1}'),
        ([TABLE, TTLS], None, '{"v": 1}'),
        ([OTHER, TTLS], None, '{"v": 1}'),
        ([TABLE, (VERSION[0], None)], None, None),
        ([TABLE], None, None),
        ([], None, None),
        (None, None, None),
    ],
)
def test_headers_tell_the_version_and_the_ttls_of_cells(
    spark: SparkSession, headers: list[tuple[str, bytes | None]] | None, made_by: str | None, cell_ttls: str | None
) -> None:
    kinds = "headers array<struct<key:string,value:binary>>"
    told = None if headers is None else [(name, None if text is None else bytearray(text)) for name, text in headers]
    frame = spark.createDataFrame([(told,)], kinds)
    assert tuple(frame.selectExpr(MADE_BY, CELL_TTLS).collect()[0]) == (made_by, cell_ttls)
