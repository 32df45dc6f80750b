"""The whole way: random tables in ScyllaDB, the connector, Kafka, landing; then `SELECT *` against the landed views.

Tables have every kind of type and odd names, writes are of every kind and often at equal times; then tables and types
are altered while the connector runs, its worker is killed, and landing forgets its checkpoint. Two tables, since each
costs what all its plans do, of a seed of which it is asked what it must hold; the soak has the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connector.values.types import ListType, MapType, SetType, UserType, is_multi_cell
from embedded.kafka import EmbeddedKafka
from tests.servers.scylla import Scylla
from tests.spark_jobs.random_tables import LITERALS
from tests.spark_jobs.whole_way import invented, whole_way

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.scylla,
    pytest.mark.any_scylla,
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("interpreted", "planned_once"),
    # py4j keeps a socket for every Python thread and leaves closing it to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]


NAMES = ("t0", "T1")
SEED, WRITES = 15590, 100


def test_random_tables_land_as_the_source_shows_them(
    spark: SparkSession,
    spark_config: dict[str, Any],
    scylla: Scylla,
    kafka: EmbeddedKafka,
    unique: Callable[[str], str],
    tmp_path: Path,
) -> None:
    scylla.require("vector")
    compared = whole_way(scylla, spark, spark_config, kafka.bootstrap_servers, unique, tmp_path, SEED, NAMES, WRITES)
    assert min(compared) > 10


def test_the_seed_has_tables_of_every_kind() -> None:
    """Keys of one column and of several, in both directions, and no clustering; statics beside what a row has of its
    own; every kind of type, whole and by its elements; of those of one value all but a few."""
    tables = [table for table, _ in invented(SEED, "ks", NAMES)]
    assert {len(table.partition) for table in tables} == {1, 2}
    assert {0} < {len(table.clustering) for table in tables} and any(
        table.statics and table.regulars for table in tables
    )
    assert {desc for table in tables for *_, desc in table.clustering} == {False, True}
    types = [kind for table in tables for kind in table.columns().values()]
    assert {type(kind) for kind in types if is_multi_cell(kind)} == {ListType, MapType, SetType, UserType}
    texts = " ".join(kind.cql() for kind in types) + str([table.types for table in tables])
    assert all(f"frozen<{kind}<" in texts for kind in ("list", "map", "set", "tuple")) and "vector<" in texts
    assert len(LITERALS.keys() & set(re.findall(r"\w+", texts))) >= len(LITERALS) - 4
