"""The landing configuration: everything that is wrong is told at once, and nothing is taken without effect."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.errors import ConfigurationError
from spark_jobs.config.properties import PROPERTIES
from spark_jobs.config.settings import BESIDE, load_settings
from spark_jobs.session import session_settings
from spark_jobs.session.jvm_start import quiet_start
from spark_jobs.stream.progress import Progress
from tests.house import ROOT
from tests.servers.patience import until

GOOD: dict[str, Any] = {
    "name": "job",
    "bootstrap.servers": "k:9092",
    "topic.prefix": "p",
    "tables": ["ks.t", "ks.u"],
    "warehouse": "lake",
}


def problems(config: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(config)
    return {problem.property: str(problem) for problem in caught.value.problems}


def test_a_session_has_the_jars_that_a_command_has_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_GATEWAY_PORT", "SCYLLA_CDC_SPARK_JARS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(tmp_path))
    assert "spark.jars" not in session_settings({})
    jar = tmp_path / "jars" / "spark" / "delta.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"")
    assert session_settings({})["spark.jars"] == str(jar)
    assert session_settings({"spark.jars": "mine.jar"})["spark.jars"] == "mine.jar"


def test_the_example_is_valid() -> None:
    settings = load_settings(Path(__file__).resolve().parents[2] / "config" / "landing.json")
    assert [str(table) for table in settings.tables] == ["shop.orders"]
    assert settings.schema_topic == "shop.schemas"


def test_the_page_has_every_property_with_its_default() -> None:
    page = (ROOT / "docs" / "landing.md").read_text().partition("\n## Properties\n")[2]
    rows = {
        name: re.sub(r",(?=\d)", "", default).lower()
        for names, default in re.findall(r"^\| (`.*?) \| (.*?)\| .*\|$", page, re.MULTILINE)
        for name in re.findall(r"`(.*?)`", names)
    }
    assert rows.keys() >= {each.name for each in PROPERTIES}
    told = {each.name: str(each.default_text or each.default or "") for each in PROPERTIES}
    assert [name for name, text in told.items() if text.lower() not in rows[name]] == []


def test_defaults_and_texts() -> None:
    settings = load_settings({**GOOD, "merge.every.rows": "5", "tables": "ks.t", "kafka.security.protocol": "SSL"})
    assert settings.merge_every_rows == 5
    assert settings.kafka() == {"security.protocol": "SSL", "bootstrap.servers": "k:9092"}
    assert Path(settings.warehouse).is_absolute()
    assert settings.checkpoint == f"{settings.warehouse}/_checkpoint"
    assert load_settings({**GOOD, "warehouse": "hdfs://lake/x/"}).warehouse == "hdfs://lake/x"


def test_many_tables_are_asked_less_often_unless_the_file_says_how_often() -> None:
    hundreds = {**GOOD, "tables": [f"ks.t{number}" for number in range(300)]}
    assert load_settings(GOOD).trigger_interval_ms == 2_000
    assert load_settings(hundreds).trigger_interval_ms == 9_900
    assert load_settings({**hundreds, "trigger.interval.ms": 0}).trigger_interval_ms == 0


def test_spark_connect_is_refused_by_what_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's own words for it were about a master that nobody had named."""
    found = problems({**GOOD, "spark.remote": "sc://spark:15002", "spark.api.mode": "connect"})
    assert found.keys() == {"spark.remote", "spark.api.mode"}
    assert "Spark Connect is not supported" in found["spark.remote"]
    monkeypatch.setenv("SPARK_API_MODE", "Connect")
    load_settings({**GOOD, "spark.api.mode": "classic"})
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark:15002")
    found = problems(GOOD)
    assert found.keys() == {"SPARK_REMOTE", "SPARK_API_MODE"} and found["SPARK_REMOTE"].startswith("environment: ")


def test_a_declared_column_may_have_a_dot_in_its_name() -> None:
    settings = load_settings({**GOOD, "column.types": {"ks.t.unit.price": "decimal(5,2)"}})
    assert settings.declared_types(settings.tables[0]) == {"unit.price": "decimal(5,2)"}
    assert settings.declared_types(settings.tables[1]) == {}


def test_all_problems_are_told_at_once() -> None:
    found = problems(
        {"name": "job", "tables": ["nonsense"], "warehous": "x", "merge.every.rows": 0, "value.converter": "json"}
    )
    assert set(found) == {"bootstrap.servers", "topic.prefix", "warehouse", "tables", "warehous", "merge.every.rows"}
    assert "did you mean warehouse?" in found["warehous"]


def test_places_where_commits_or_leases_could_be_overwritten_are_refused_with_what_helps() -> None:
    found = problems({**GOOD, "warehouse": "s3a://lake", "lease.folder": "s3a://lake/leases"})
    assert "spark.delta.logStore.s3a.impl to io.delta.storage.S3DynamoDBLogStore" in found["warehouse"]
    assert "Two jobs could hold one lease" in found["lease.folder"]
    assert "HDFS" in problems({**GOOD, "warehouse": "oss://lake", "spark.delta.logStore.oss.impl": "x"})["warehouse"]
    iceberg = {**GOOD, "sink": "iceberg", "warehouse": "gs://lake"}
    assert '"spark.sql.catalog.scylla_cdc.type"' in problems(iceberg)["warehouse"]
    assert load_settings({**iceberg, "spark.sql.catalog.scylla_cdc.type": "rest"}).lease_folder == "gs://lake/_leases"
    safe = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore", "lease.folder": "hdfs://leases"}
    assert load_settings({**GOOD, "warehouse": "s3a://lake", **safe}).lease_folder == "hdfs://leases"


def test_a_name_that_no_file_can_have_is_told() -> None:
    """The job ended with `unexpected FileNotFoundError`."""
    assert "Cannot have a slash" in problems({**GOOD, "name": "team/landing"})["name"]


def test_a_name_that_is_the_lease_of_a_backfill_is_told() -> None:
    """While one of the two ran, the other was refused: as if it wrote the same tables."""
    assert "the lease of a backfill" in problems({**GOOD, "name": f"landing{BESIDE}"})["name"]


def test_contradictions_between_properties_are_told() -> None:
    found = problems(
        {
            **GOOD,
            "column.types": {"ks.t.price": "decimal(50,2)", "ks.x.price": "decimal(5,2)"},
            "value.converter": "io.confluent.connect.avro.AvroConverter",
        }
    )
    assert set(found) == {"column.types.ks.t.price"}
    found = problems(
        {
            **GOOD,
            "column.types": {"ks.x.price": "decimal(5,2)"},
            "value.converter": "AvroConverter",
            "schema.evolution.freeze": ["ks.tt"],
            "table.definitions": ["missing.cql"],
        }
    )
    assert set(found) == {
        "column.types.ks.x.price",
        "schema.registry.url",
        "schema.evolution.freeze",
        "table.definitions",
    }
    assert "did you mean ks.t?" in found["schema.evolution.freeze"]


def test_tables_whose_names_are_those_of_landings_own_are_refused_where_they_would_be_one() -> None:
    pair = {**GOOD, "tables": ["ks.t", "ks.t__history", "ks.u__state", "ks2.t__state"]}
    assert load_settings(pair).sink == "delta"
    found = problems({**pair, "sink": "iceberg"})
    assert set(found) == {"tables"} and "what landing keeps for ks.t: both would be one table" in found["tables"]


def test_formats_and_histories_are_checked() -> None:
    assert load_settings({**GOOD, "sink": "iceberg", "history": "ks.t"}).session_config()["sink"] == "iceberg"
    assert set(problems({**GOOD, "sink": "iceburg"})) == {"sink"}
    assert "did you mean ks.t?" in problems({**GOOD, "history": ["ks.tt"]})["history"]
    assert set(problems({**GOOD, "history.retention.ms": 1})) == {"history.retention.ms"}


def test_secrets_are_masked() -> None:
    found = problems({**GOOD, "sasl.password": "hunter2"})
    assert "hunter2" not in found["sasl.password"]


def test_a_file_that_is_not_json_is_named_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "landing.json"
    file.write_text('{"name": }')
    with pytest.raises(ConfigurationError, match="line 1, column 10"):
        load_settings(file)


def test_what_a_file_gives_twice_is_told_with_its_lines(tmp_path: Path) -> None:
    twice = '"column.types": {"ks.t.a": "bigint",\n"ks.t.a": "decimal(3,1)"},\n"tables": "ks.v"'
    (tmp_path / "l.json").write_text(f"{json.dumps(GOOD)[:-1]},\n{twice}}}")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path / "l.json")
    told = [(each.property, each.problem, each.suggestion) for each in caught.value.problems]
    assert told == [
        ("tables", "Is given twice", "on lines 1 and 4"),
        ("ks.t.a", "Is given twice", "on lines 2 and 3"),
    ]


def test_a_session_has_a_task_per_core_of_one_machine_and_more_on_a_cluster() -> None:
    name = "spark.sql.shuffle.partitions"
    assert session_settings({"spark.master": "local[3]"})[name] == "3"
    assert session_settings({"spark.master": "local[5,2]"})[name] == "5"
    assert session_settings({"spark.master": "local"})[name] == "1"
    assert session_settings({"spark.master": "local[*]"})[name] == str(os.cpu_count())
    assert session_settings({"spark.master": "yarn"})[name] == "32"
    assert session_settings({"spark.master": "local[3]", name: "7"})[name] == "7"


def test_what_a_jvm_writes_to_stdout_is_not_among_a_commands_results(capfd: pytest.CaptureFixture[str]) -> None:
    noise = [sys.executable, "-c", "print('Deleted 0 files')"]
    with quiet_start(True) as said:
        subprocess.run(noise, check=True)
        assert said() == "Deleted 0 files"
    with quiet_start(False):
        subprocess.run(noise, check=True)
    # A thread takes it to stderr.
    seen: list[str] = []

    def said_all() -> bool:
        out, err = capfd.readouterr()
        assert out == ""
        seen.append(err)
        return "".join(seen) == "Deleted 0 files\n"

    until(said_all)


def test_a_table_that_goes_on_is_not_told_as_failed() -> None:
    progress = Progress(io.StringIO())
    progress.of("ks.t").last_error = "its topic is gone"
    assert progress.text().endswith("FAILED: its topic is gone")
    progress.batch("ks.t", 1, {}, None)
    assert progress.text() == "ks.t: 1 changes, 0 merges"


def test_a_publication_that_fails_is_told_until_one_succeeds() -> None:
    """The next batch said that all was well, while what others read stayed behind for hours."""
    progress = Progress(io.StringIO())
    table = progress.of("ks.t")
    table.beside["publishing"] = "no space"
    progress.batch("ks.t", 1, {}, None)
    assert progress.text().endswith("FAILED: publishing failed: no space")
    assert progress.summary()["tables"]["ks.t"]["error"] == "publishing failed: no space"
    table.beside.clear()
    assert progress.summary()["tables"]["ks.t"]["error"] is None


def test_a_table_to_which_nothing_comes_is_not_told_as_ever_more_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last change grew old, so that a table that nobody writes to looked as if its job had stopped."""
    progress, now = Progress(io.StringIO()), [1000.0]
    monkeypatch.setattr("spark_jobs.stream.progress.time", SimpleNamespace(time=lambda: now[0], monotonic=lambda: 0.0))

    def lag() -> int | None:
        lag: int | None = progress.summary()["tables"]["ks.t"]["lag_ms"]
        return lag

    progress.batch("ks.t", 1, {}, 998_000_000)
    now[0] = 5000.0
    progress.batch("ks.t", 0, {}, None)
    assert lag() == 2000
    progress.of("ks.t").last_error = "its topic is gone"
    assert lag() == 4_002_000, "a table that fails is left behind"
