"""`column.types` of columns of which values have landed: what a reader's type cannot hold is told, never rounded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cassandra.cluster import Session
from pyspark.sql import SparkSession

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.model.definitions import parse_definition
from spark_jobs.stream.declared_types import check_fitting
from spark_jobs.tables.notes import Known
from tests.servers.scylla import Scylla
from tests.spark_jobs.source_tables import WITH_SOURCE, SourceTables, equal

pytestmark = WITH_SOURCE


def test_types_that_landed_values_do_not_fit_are_refused_and_differ(
    spark: SparkSession, scylla: Scylla, cql: Session, keyspace: str, warehouse: str
) -> None:
    cql.execute(
        f"CREATE TABLE {keyspace}.t (p int, k decimal, v decimal, n varint, w timestamp, PRIMARY KEY (p, k)) "
        "WITH cdc = {'enabled': true}"
    )
    rows = ("1, 2.0, 1.5, 7, 0", "2, 2.25, 1.239, 12345, 9223372036854775807", "3, 2, 9.999, 1, 1", "3, 2, 9.99, 1, 1")
    for values in rows:
        cql.execute(f"INSERT INTO {keyspace}.t (p, k, v, n, w) VALUES ({values})")
    source = SourceTables(spark, scylla, warehouse, [f"{keyspace}.t"])
    landed, table = source.landed(f"{keyspace}.t"), TableName(keyspace, "t")
    definitions, _ = source.read([f"{keyspace}.t"])
    noted = Known((parse_definition(definitions[f"{keyspace}.t"]),), {"w": "bigint"}, buckets=2)
    landed.prepare(noted)
    source.land()

    check_fitting(landed, table, noted, noted)
    wide = {"w": "bigint", "v": "decimal(10,3)", "n": "decimal(5,0)"}
    check_fitting(landed, table, noted, replace(noted, declared=wide))
    narrow = replace(noted, declared={"v": "decimal(10,2)", "n": "decimal(3,0)"})
    with pytest.raises(LandingError, match=r"column.types was changed, .*land --rebuild") as caught:
        check_fitting(landed, table, noted, narrow)
    for told in ("1 landed values of v cannot be shown as decimal(10,2)", "of n", "1 landed values of w", "timestamp"):
        assert told in str(caught.value)

    versions = replace(noted, history=True, sequence=1)
    landed.prepare(versions)
    with pytest.raises(LandingError, match=r"2 landed values of v"):
        check_fitting(landed, table, versions, replace(versions, declared={"v": "decimal(10,2)", "w": "bigint"}))

    # As an earlier version took it.
    landed.prepare(replace(noted, declared={"v": "decimal(10,2)", "w": "bigint"}, sequence=2))
    (verdict,) = source.verify()
    found = [(each.key["p"], each.column, str(each.source), str(each.landed)) for each in verdict.first]
    assert found == [(2, "v", "1.239", "1.24")] and verdict.differences == 1
    landed.prepare(replace(noted, declared=wide, sequence=3))
    equal(source.verify())
    landed.prepare(replace(noted, declared={**wide, "k": "decimal(10,1)"}, sequence=4))
    (verdict,) = source.verify()
    found = [(each.key["p"], each.column, str(each.source), str(each.landed)) for each in verdict.first]
    assert found == [(2, "k", "2.25", "2.3")] and verdict.differences == 1
