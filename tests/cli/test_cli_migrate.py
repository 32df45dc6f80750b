"""`scylla-cdc migrate`: every line gets its word, the files that are written run, secrets are nowhere but in them."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.cli.main import run
from connector.config import Configuration
from connector.source import Connection
from connector.worker import java_offsets
from tests.config.files import CONNECTOR
from tests.servers.scylla import Scylla

CANARY = "k4n4ry-Zx9"
SCYLLA = "com.scylladb.cdc.debezium.connector.ScyllaConnector"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{CANARY}";'
WORKER = {
    "bootstrap.servers": "k:9092",
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.topic": "connect-configs",
    "rest.port": "8083",
    "producer.delivery.timeout.ms": "2147483647",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": JAAS,
}
ORDERS = {
    **CONNECTOR,
    "connector.class": SCYLLA,
    "tasks.max": "900",
    "errors.tolerance": "all",
    "database.history.kafka.topic": "history",
    "scylla.user": "u",
    "scylla.password": CANARY,
}


class Answer:
    def __init__(self, status: int, out: str, err: str) -> None:
        assert CANARY not in out + err
        self.status, self.err = status, err
        self.document: dict[str, Any] = json.loads(out)

    def verdict(self, name: str) -> tuple[str, str]:
        (found,) = (line for line in self.document["lines"] if line["property"] == name)
        return found["verdict"], found["text"]


@pytest.fixture
def migrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def answer(*arguments: Any, connector: dict[str, Any] = ORDERS, worker: dict[str, str] | None = WORKER) -> Answer:
        files = [tmp_path / "orders.json"]
        files[0].write_text(json.dumps(connector))
        if worker is not None:
            files.append(tmp_path / "connect-distributed.properties")
            files[1].write_text("".join(f"{name}={text}\n" for name, text in worker.items()))
        status = run(["migrate", *map(str, files), *map(str, arguments), "--json"])
        return Answer(status, *capsys.readouterr())

    return answer


def test_every_line_has_its_word(migrate: Any) -> None:
    answer = migrate()
    assert answer.status == 0 and answer.document["possible"] is True and answer.document["files"] == []
    named = [line["property"] for line in answer.document["lines"] if not line["property"].startswith("(")]
    assert sorted(named) == sorted([*ORDERS, *WORKER])
    assert answer.verdict("topic.prefix") == ("kept", "")
    assert answer.verdict("database.history.kafka.topic")[0] == "no effect"
    assert answer.verdict("rest.port") == ("no effect", "has no effect here: the REST API is on `--http-port`")
    assert answer.verdict("producer.delivery.timeout.ms")[0] == "changed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tasks.max", "25 processes of one `run`"),
        ("(heartbeat.interval.ms)", "to __debezium-heartbeat.shop every 30 s"),
        ("(errors.deadletterqueue.topic.name)", "shop.dead-letters"),
        ("(transactions)", "read_committed"),
        ("(float keys)", "--online looks"),
        ("offset.storage.topic", "connect-offsets-scylla-cdc"),
        ("status.storage.topic", "connect-status-scylla-cdc"),
    ],
)
def test_silent_changes_are_said(migrate: Any, name: str, said: str) -> None:
    verdict, text = migrate().verdict(name)
    assert verdict == "changed" and said in text


def test_what_is_as_before_is_not_said_to_change(migrate: Any) -> None:
    quiet = {"tasks.max": "1", "heartbeat.interval.ms": "30000", "errors.tolerance": "none"}
    answer = migrate(connector={**ORDERS, **quiet})
    changed = [line["property"] for line in answer.document["lines"] if line["verdict"] == "changed"]
    assert changed[:2] == ["(transactions)", "(float keys)"] and "tasks.max" not in changed


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("initial", "here initial writes the rows that are in the tables already"),
        ("ALWAYS", "at each start"),
        ("initial_only", "ends `run`"),
        ("when_needed", "write when_needed into the new file if you want that"),
        ("schema_only", "a mode of Debezium's other connectors"),
        ("custom", "signals for a part of the rows"),
        ("", "is empty"),
    ],
)
def test_a_mode_of_snapshots_that_java_ignores_is_not_handed_on(
    migrate: Any, tmp_path: Path, mode: str, said: str
) -> None:
    answer = migrate("--to", tmp_path / "new", connector={**ORDERS, "snapshot.mode": mode})
    assert answer.status == 0
    verdict, text = answer.verdict("snapshot.mode")
    assert verdict == "changed" and text.startswith("no_data is written in its place") and said in text
    written = json.loads((tmp_path / "new" / "orders.json").read_text())
    assert written["config"]["snapshot.mode"] == "no_data"


@pytest.mark.parametrize("mode", ["no_data", "never"])
def test_a_mode_without_snapshots_is_kept(migrate: Any, mode: str) -> None:
    assert migrate(connector={**ORDERS, "snapshot.mode": mode}).verdict("snapshot.mode") == ("kept", "")


def test_options_of_transforms_that_are_ignored_are_left_out(migrate: Any, tmp_path: Path) -> None:
    unwrap = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}
    answer = migrate("--to", tmp_path / "new", connector={**ORDERS, **unwrap, "transforms.u.operation.header": "true"})
    verdict, text = answer.verdict("transforms.u.operation.header")
    assert verdict == "no effect" and "add.headers=op" in text
    assert "operation.header" not in (tmp_path / "new" / "orders.json").read_text()


def test_the_files_are_valid_and_say_no_more_than_needed(migrate: Any, tmp_path: Path, capsys: Any) -> None:
    to = tmp_path / "new"
    assert migrate("--to", to).document["files"] == [str(to / "orders.json"), str(to / "worker.json")]
    connector, worker = (json.loads((to / name).read_text()) for name in ("orders.json", "worker.json"))
    assert connector["name"] == "orders" and connector["config"]["scylla.password"] == CANARY
    assert "database.history.kafka.topic" not in connector["config"] and "rest.port" not in worker
    assert worker["offset.storage.topic"] == "connect-offsets-scylla-cdc"
    assert run(["validate", "--offline", str(to / "orders.json"), "--worker", str(to / "worker.json")]) == 0
    assert "has no effect" not in capsys.readouterr().err


@pytest.fixture
def open_umask() -> Iterator[None]:
    """New files are for all to read, as nearly everywhere: where they are not, nobody could tell why."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_files_with_secrets_are_their_owners_alone(migrate: Any, tmp_path: Path) -> None:
    def modes(to: Path) -> list[int]:
        return [stat.S_IMODE(path.stat().st_mode) & 0o077 for path in sorted(to.iterdir())]

    migrate("--to", tmp_path / "a")
    assert modes(tmp_path / "a") == [0, 0]
    referred = {**ORDERS, "scylla.password": "${file:/none:k}"}
    plain = {name: text for name, text in WORKER.items() if not name.startswith("sasl")}
    plain["security.protocol"] = "PLAINTEXT"
    migrate("--to", tmp_path / "b", connector=referred, worker=plain)
    assert all(mode & 0o044 for mode in modes(tmp_path / "b"))


def test_files_are_overwritten_only_by_force(migrate: Any, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "worker.json").write_text("mine")
    answer = migrate("--to", tmp_path / "new")
    assert answer.status == 2 and "is there already" in json.dumps(answer.document)
    answer = migrate("--to", tmp_path / "new" / "worker.json")
    assert answer.status == 2 and "is not a folder" in json.dumps(answer.document)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["worker.json"]
    assert migrate("--to", tmp_path / "new", "--force").status == 0
    assert json.loads((tmp_path / "new" / "worker.json").read_text())["group.id"] == "connect"


def test_a_disk_without_room_is_named_with_the_file_and_nothing_is_left_behind(
    migrate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    answer = migrate("--to", tmp_path / "new")
    assert answer.status == 1 and not [*(tmp_path / "new").iterdir()]
    assert answer.document["error"].endswith("new/orders.json cannot be written: No space left on device")


def test_what_is_impossible_stays_to_be_mended(migrate: Any, tmp_path: Path, capsys: Any) -> None:
    kind = "com.example.transforms.OurOwn$Value"
    chain = {"transforms": "a", "transforms.a.type": kind, "scylla.pasword": "x"}
    answer = migrate("--to", tmp_path / "new", connector={**ORDERS, **chain})
    assert answer.status == 2 and answer.document["possible"] is False
    assert answer.verdict("transforms.a.type")[0] == "impossible"
    assert answer.verdict("scylla.pasword") == ("impossible", "Unknown property (did you mean scylla.password?)")
    written = json.loads((tmp_path / "new" / "orders.json").read_text())
    assert written["config"]["transforms.a.type"] == kind
    assert run(["validate", "--offline", str(tmp_path / "new" / "orders.json")]) == 2
    assert kind in capsys.readouterr().err


def test_what_is_missing_is_impossible(migrate: Any) -> None:
    without = {name: text for name, text in ORDERS.items() if name != "topic.prefix"}
    verdict, text = migrate(connector={**without, "database.server.name": "shop"}).verdict("topic.prefix")
    assert verdict == "impossible" and "rename database.server.name" in text


def test_a_file_of_a_java_connector_before_1_2_3_is_renamed(migrate: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PREFIX", "shop")
    old = {"scylla.name": "${env:PREFIX}", **{name: text for name, text in ORDERS.items() if name != "topic.prefix"}}
    answer = migrate("--to", tmp_path / "new", connector=old)
    assert answer.status == 0
    assert answer.verdict("scylla.name")[0] == "changed" and answer.verdict("topic.prefix") == ("kept", "")
    assert "datacenter of the first contact point" in answer.verdict("(scylla.local.dc)")[1]
    assert "to __debezium-heartbeat.shop every" in answer.verdict("(heartbeat.interval.ms)")[1]
    config = json.loads((tmp_path / "new" / "orders.json").read_text())["config"]
    assert config["topic.prefix"] == "${env:PREFIX}" and "scylla.name" not in config
    both = migrate(connector={**ORDERS, "scylla.name": "of old", "scylla.local.dc": "dc1"})
    assert both.verdict("scylla.name")[0] == "no effect"


def test_references_are_kept_as_they_are_written(migrate: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("SECRET", CANARY)
    given = {**ORDERS, "scylla.password": "${env:SECRET}", "scylla.local.dc": "${env:NOT_HERE}"}
    answer = migrate("--to", tmp_path / "new", connector=given)
    assert answer.status == 0
    assert answer.verdict("scylla.local.dc")[1].startswith("not found on this machine")
    config = json.loads((tmp_path / "new" / "orders.json").read_text())["config"]
    assert (config["scylla.password"], config["scylla.local.dc"]) == ("${env:SECRET}", "${env:NOT_HERE}")
    answer = migrate(connector={**ORDERS, "errors.log.enable": "${env:NOT_HERE}", "kafka.api.key": "${vault:a:b}"})
    assert answer.status == 0
    assert answer.verdict("errors.log.enable")[0] == answer.verdict("kafka.api.key")[0] == "no effect"
    answer = migrate(connector={**ORDERS, "scylla.password": "${vault:a:b}"})
    assert answer.verdict("scylla.password")[0] == "impossible"
    refused = tmp_path / "refused.properties"
    provider = "config.providers.k.class=io.strimzi.kafka.KubernetesSecretConfigProvider"
    refused.write_text(f"bootstrap.servers=k:9092\nconfig.providers=k\n{provider}\n")
    (tmp_path / "refers.json").write_text(json.dumps({**ORDERS, "scylla.password": "${k:ns/s:p}"}))
    assert run(["migrate", str(tmp_path / "refers.json"), str(refused), "--json"]) == 2
    lines = {line["property"]: line for line in json.loads(capsys.readouterr().out.splitlines()[-1])["lines"]}
    assert lines["scylla.password"]["verdict"] == lines["config.providers.k.class"]["verdict"] == "impossible"


def test_a_file_without_a_name_gets_its_own(migrate: Any) -> None:
    answer = migrate(connector={name: text for name, text in ORDERS.items() if name != "name"})
    assert answer.status == 0 and answer.verdict("name")[0] == "kept"


def test_other_connectors_stay_where_they_are(migrate: Any, tmp_path: Path) -> None:
    other = tmp_path / "sink.properties"
    other.write_text("name=sink\nconnector.class=io.confluent.connect.s3.S3SinkConnector\ntopics=a\n")
    answer = migrate(other, "--to", tmp_path / "new")
    assert answer.status == 0 and sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        *("orders.json", "worker.json")
    ]
    assert any("another connector" in line["text"] for line in answer.document["lines"])


def test_wrong_use(migrate: Any, tmp_path: Path) -> None:
    second = tmp_path / "second.properties"
    second.write_text("bootstrap.servers=k\n")
    assert "one worker's file" in json.dumps(migrate(second).document)
    assert "needs --to" in json.dumps(migrate("--import-positions").document)
    assert "no such file" in json.dumps(migrate(tmp_path / "none.json").document).lower()


def test_for_people(migrate: Any, tmp_path: Path, capsys: Any) -> None:
    migrate()
    files = [str(tmp_path / "orders.json"), str(tmp_path / "connect-distributed.properties")]
    assert run(["migrate", *files, "--to", str(tmp_path / "new")]) == 0
    out = capsys.readouterr().out
    new = tmp_path / "new"
    both = f"{new / 'orders.json'} --worker {new / 'worker.json'}"
    assert f"scylla-cdc offsets import {both} --from-topic connect-offsets\n" in out
    assert f"scylla-cdc run {both}\n" in out and "(mode 0600: it holds secrets)" in out and CANARY not in out


def test_positions_are_not_imported_for_files_that_cannot_run(migrate: Any, tmp_path: Path) -> None:
    answer = migrate("--to", tmp_path / "new", "--import-positions", connector={**ORDERS, "taks.max": "1"})
    assert (answer.status, answer.document["positions"]) == (2, [])


def test_positions_are_imported_from_the_topic_that_the_java_connector_had(
    migrate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | Path, str]] = []

    def taken(configuration: Configuration, topic: str | Path, java_name: str) -> java_offsets.ImportReport:
        asked.append((configuration.connector.delivery.offset_topic, topic, java_name))
        return java_offsets.ImportReport(java_name, {"shop.orders": java_offsets.TakenOver(5, 4, 7)})

    monkeypatch.setattr(java_offsets, "import_offsets", taken)
    answer = migrate("--to", tmp_path / "new", "--import-positions")
    assert asked == [("connect-offsets-scylla-cdc", "connect-offsets", "orders")]
    (taken_over,) = answer.document["positions"]
    assert {name: (each["streams"], each["read_to"]) for name, each in taken_over["tables"].items()} == {
        "shop.orders": (4, 7)
    }
    own = {**ORDERS, "offsets.storage.topic": "own-offsets"}
    migrate("--to", tmp_path / "own", "--import-positions", connector=own)
    assert asked[-1] == ("own-offsets-scylla-cdc", "own-offsets", "orders")
    monkeypatch.setenv("OLD_TOPIC", "by-reference")
    migrate(
        "--to", tmp_path / "ref", "--import-positions", worker={**WORKER, "offset.storage.topic": "${env:OLD_TOPIC}"}
    )
    assert asked[-1] == ("by-reference-scylla-cdc", "by-reference", "orders")
    standalone = tmp_path / "connect-standalone.properties"
    standalone.write_text("bootstrap.servers=k:9092\noffset.storage.file.filename=/tmp/connect.offsets\n")
    migrate()
    files = [str(tmp_path / "orders.json"), str(standalone)]
    assert run(["migrate", *files, "--to", str(tmp_path / "alone"), "--import-positions", "--json"]) == 0
    assert asked[-1][1:] == (Path("/tmp/connect.offsets"), "orders")
    assert run(["migrate", *files, "--to", str(tmp_path / "named"), "--import-positions", "--from-topic", "t"]) == 0
    assert asked[-1][1:] == ("t", "orders")


@pytest.mark.scylla
def test_online_all_tables_are_looked_at_together(
    migrate: Any, scylla: Scylla, unique: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyspace, asked = unique("ks").replace("-", "_"), list[str]()
    scylla.execute(scylla.keyspace_ddl(keyspace, tablets=True))
    names = [f"{keyspace}.t{number}" for number in range(10)]
    for name in names[:8]:
        key = "double" if name == names[3] else "int"
        scylla.execute(f"CREATE TABLE {name} (id {key} PRIMARY KEY) WITH cdc = {{'enabled': {name != names[7]}}}")
    query = Connection.query

    def counted(self: Connection, text: str, *rest: Any, **options: Any) -> list[dict[str, Any]]:
        asked.append(text)
        return query(self, text, *rest, **options)

    monkeypatch.setattr(Connection, "query", counted)
    plain = {name: text for name, text in ORDERS.items() if name not in ("scylla.user", "scylla.password")}
    answer = migrate("--online", connector={**plain, **scylla.properties(), "scylla.table.names": ",".join(names)})
    assert answer.status == 2 and answer.verdict("(float keys)")[1].endswith(f"{names[3]}: id")
    wrong = [line["text"] for line in answer.document["lines"] if line["verdict"] == "impossible"]
    assert len(wrong) == 3 and names[7] in wrong[0] and "has no change log" in wrong[0]
    assert wrong[1:] == [f"table {name} does not exist" for name in names[8:]]
    assert len([text for text in asked if "system_schema" in text]) < len(names), "one of each kind for the keyspace"
