"""Files as people have them: `.properties`, YAML, resources of Kubernetes, variables, answers of Connect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connector.config import Configuration, load, read_documents
from connector.config.forms.yaml_text import yaml_documents
from connector.config.java_properties import java_properties
from connector.errors import ConfigurationError
from tests.config.files import CONNECTOR, WORKER

CASES = json.loads((Path(__file__).parent / "java_properties.json").read_text())["cases"]


@pytest.mark.parametrize(("text", "pairs"), CASES)
def test_properties_are_read_as_java_reads_them(text: str, pairs: dict[str, str] | None) -> None:
    if pairs is None:
        with pytest.raises(ValueError, match="Malformed"):
            java_properties(text)
    else:
        assert java_properties(text) == pairs


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def taken(tmp_path: Path, name: str, content: str | bytes, worker: Any = WORKER) -> Configuration:
    return load(written(tmp_path, name, content), worker, {})


PROPERTIES = """
# the connector of the orders
name=orders
connector.class : com.scylladb.cdc.debezium.connector.ScyllaConnector
scylla.cluster.ip.addresses = 10.0.0.1:9042,\\
    10.0.0.2:9042
scylla.table.names shop.orders
topic.prefix=shop
tasks.max=2
"""


@pytest.mark.parametrize("name", ["c.properties", "c", "c.conf"])
def test_a_connector_of_connect_standalone(tmp_path: Path, name: str) -> None:
    connector = taken(tmp_path, name, PROPERTIES).connector
    assert (connector.name, connector.tasks_max) == ("orders", 2)
    assert [str(point) for point in connector.connection.contact_points] == ["10.0.0.1:9042", "10.0.0.2:9042"]


def test_a_worker_of_connect_standalone(tmp_path: Path) -> None:
    worker = written(
        tmp_path,
        "connect-standalone.properties",
        "bootstrap.servers=k:9092\nkey.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "key.converter.schemas.enable=false\noffset.storage.file.filename=/tmp/connect.offsets\n",
    )
    found = load(CONNECTOR, worker, {})
    assert found.worker.bootstrap_servers == "k:9092" and not found.connector.output.key_converter.schemas_enable
    assert any("offset.storage.file.filename" in notice for notice in found.notices)


@pytest.mark.parametrize("content", ["scylla.user=J\xf6rg\n".encode(encoding) for encoding in ("utf-8", "latin-1")])
def test_letters_beyond_ascii(tmp_path: Path, content: bytes) -> None:
    found = taken(tmp_path, "c.properties", PROPERTIES.encode() + content + b"scylla.password=x\n")
    assert found.connector.connection.user == "J\xf6rg"
    assert any("is read as UTF-8" in notice for notice in found.notices) == (b"\xc3" in content)


def test_a_property_given_twice_in_a_properties_file_is_said(tmp_path: Path) -> None:
    found = taken(tmp_path, "c.properties", PROPERTIES + "tasks.max=5\n")
    assert found.connector.tasks_max == 5
    assert any("tasks.max: is given 2 times: the last one counts" in notice for notice in found.notices)


STRIMZI = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: orders
  labels:
    strimzi.io/cluster: connect
spec:
  class: com.scylladb.cdc.debezium.connector.ScyllaConnector
  tasksMax: 3
  autoRestart:
    enabled: true
  config:
    scylla.cluster.ip.addresses: 10.0.0.1:9042
    scylla.table.names: shop.orders
    topic.prefix: shop
    scylla.query.time.window.size: 2_000
    tombstones.on.delete: no
    topic.creation.default.retention.ms: -1
"""


def test_a_connector_of_strimzi(tmp_path: Path) -> None:
    found = taken(tmp_path, "orders.yaml", STRIMZI)
    connector = found.connector
    assert (connector.name, connector.tasks_max, connector.reading.window_ms) == ("orders", 3, 2000)
    assert connector.output.tombstones is False
    assert connector.delivery.topic_creation.default.config == {"retention.ms": "-1"}
    assert [notice for notice in found.notices if "autoRestart" in notice]


@pytest.mark.parametrize(("line", "said"), [("state: stopped", "is stopped"), ("pause: true", "is paused")])
def test_a_paused_connector_of_strimzi_is_said_to_be_run(tmp_path: Path, line: str, said: str) -> None:
    found = taken(tmp_path, "orders.yaml", STRIMZI.replace("  tasksMax: 3", f"  tasksMax: 3\n  {line}"))
    assert [notice for notice in found.notices if said in notice]


def test_what_an_operator_would_not_take_is_said(tmp_path: Path) -> None:
    found = taken(tmp_path, "orders.yaml", STRIMZI + "    tasks.max: 8\n")
    assert found.connector.tasks_max == 3
    assert [notice for notice in found.notices if "tasks.max" in notice and "spec.tasksMax counts" in notice]


def test_a_worker_of_strimzi(tmp_path: Path) -> None:
    content = """
kind: KafkaConnect
apiVersion: kafka.strimzi.io/v1beta2
metadata: {name: connect}
spec:
  bootstrapServers: k:9092
  config: {group.id: connect-cluster, offset.storage.topic: positions, offset.storage.replication.factor: -1}
"""
    found = load(CONNECTOR, written(tmp_path, "connect.yaml", content), {})
    assert (found.worker.bootstrap_servers, found.worker.offsets.name) == ("k:9092", "positions")
    with pytest.raises(ConfigurationError, match="Is translated by Strimzi's operator"):
        load(CONNECTOR, written(tmp_path, "connect.yaml", content + "  authentication: {type: scram-sha-512}\n"), {})


def test_lines_are_those_of_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flat = "\n".join(f"    {name}: '{value}'" for name, value in CONNECTOR.items())
    inner = f"{flat}\n    topic.prefix: b\n"
    (tmp_path / "c.yaml").write_text(f"apiVersion: v1\nkind: ConfigMap\ndata:\n  c.yaml: |\n{inner}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"topic\.prefix: Is given twice$"):
        load("c.yaml", WORKER, environ={})


def test_what_a_merge_brings_along_is_not_given_twice(tmp_path: Path) -> None:
    flat = "".join(f"  {name}: {value}\n" for name, value in CONNECTOR.items())
    merged = f"name: orders\nconfig:\n  <<: [{{topic.prefix: a, tasks.max: 3}}, {{topic.prefix: b}}]\n{flat}"
    connector = taken(tmp_path, "c.yaml", merged).connector
    assert (connector.tasks_max, connector.output.topic_prefix) == (3, "shop")
    with pytest.raises(ConfigurationError, match=r"topic\.prefix: Is given twice \(on lines \d+ and \d+\)"):
        taken(tmp_path, "c.yaml", f"{merged}  topic.prefix: c\n")


def test_several_documents_are_several_connectors(tmp_path: Path) -> None:
    path = written(
        tmp_path, "all.yaml", f"kind: Secret\napiVersion: v1\n---{STRIMZI}---{STRIMZI}".replace("s\n  l", "s2\n  l", 1)
    )
    assert [document.texts["name"] for document in read_documents(path, "connector")] == ["orders2", "orders"]
    with pytest.raises(ConfigurationError, match=r"Holds 2 connectors \(orders2, orders\)"):
        load(path, WORKER, {})


def test_a_resource_that_is_no_connector(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Holds no connector and no worker: Deployment"):
        taken(tmp_path, "d.yaml", "apiVersion: apps/v1\nkind: Deployment\nspec: {}\n")


def test_plain_yaml(tmp_path: Path) -> None:
    flat = "".join(f"{name}: {value}\n" for name, value in CONNECTOR.items())
    assert taken(tmp_path, "c.yml", flat).connector.name == "orders"
    nested = "name: orders\nconfig:\n" + "".join(f"  {name}: {value}\n" for name, value in CONNECTOR.items())
    assert taken(tmp_path, "c", nested).connector.name == "orders"


@pytest.mark.parametrize(
    "answer",
    [
        {"orders": {"info": {"name": "orders", "config": CONNECTOR, "tasks": [], "type": "source"}, "status": {}}},
        {"name": "orders", "config": CONNECTOR, "tasks": [{"connector": "orders", "task": 0}], "type": "source"},
        {"connectorName": "orders", "connectorConfiguration": CONNECTOR, "capacity": {"autoScaling": {}}},
    ],
)
def test_what_programs_answer(tmp_path: Path, answer: dict[str, Any]) -> None:
    assert taken(tmp_path, "c.json", json.dumps(answer)).connector.name == "orders"


COMPOSE = """
services:
  kafka: {image: kafka}
  connect:
    image: confluentinc/cp-kafka-connect:7.8.0
    environment:
      CONNECT_BOOTSTRAP_SERVERS: k:9092
      CONNECT_OFFSET_STORAGE_TOPIC: positions
      CONNECT_KEY_CONVERTER_SCHEMAS_ENABLE: false
      KAFKA_HEAP_OPTS: -Xmx2g
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("compose.yaml", COMPOSE),
        (
            "connect.env",
            "# worker\nexport CONNECT_BOOTSTRAP_SERVERS=k:9092\nCONNECT_OFFSET_STORAGE_TOPIC='positions'\n",
        ),
        ("connect.properties", "CONNECT_BOOTSTRAP_SERVERS=k:9092\nCONNECT_OFFSET_STORAGE_TOPIC=positions\n"),
    ],
)
def test_a_worker_of_variables(tmp_path: Path, name: str, content: str) -> None:
    found = load(CONNECTOR, written(tmp_path, name, content), {})
    assert (found.worker.bootstrap_servers, found.worker.offsets.name) == ("k:9092", "positions")


BARE = "BOOTSTRAP_SERVERS=k:9092\nOFFSET_STORAGE_TOPIC=positions\nSHUTDOWN_TIMEOUT=9\nCONNECT_GROUP_ID=g\nGROUP_ID=1\n"


def bare_service(image: str) -> str:
    lines = "".join(f"      - {line}\n" for line in BARE.splitlines())
    app = "  app:\n    image: shop\n    environment: {BOOTSTRAP_SERVERS: k:9092, GROUP_ID: shop, KEY_CONVERTER: x}\n"
    return f"services:\n{app}  connect:\n    {image}\n    environment:\n{lines}"


@pytest.mark.parametrize(
    ("name", "content", "group"),
    [
        ("connect.env", BARE, "g"),
        ("compose.yaml", bare_service("build: ."), "g"),
        # In the image itself the variable without the prefix is exported over the other one.
        ("compose.yaml", bare_service("image: debezium/connect:2.7"), "1"),
        ("compose.yaml", bare_service("image: quay.io/debezium/connect-base@sha256:12"), "1"),
        ("compose.yaml", bare_service("image: quay.io/debezium/connect"), "1"),
        ("compose.yaml", bare_service("image: debezium/connector"), "g"),
    ],
)
def test_debeziums_image_takes_variables_without_the_prefix(
    tmp_path: Path, name: str, content: str, group: str
) -> None:
    found = load(CONNECTOR, written(tmp_path, name, content), {})
    assert (found.worker.bootstrap_servers, found.worker.offsets.name) == ("k:9092", "positions")
    assert found.worker.group_id == group
    assert "task.shutdown.graceful.timeout.ms" in found.worker.given
    taken_as = [notice for notice in found.notices if "taken from a variable without CONNECT_" in notice]
    unlike = [notice for notice in found.notices if "GROUP_ID: has no effect without its prefix" in notice]
    assert (len(taken_as), len(unlike)) == ((1, 1) if group == "g" else (0, 0))


def test_a_service_of_bare_variables_is_the_worker_where_no_other_is(tmp_path: Path) -> None:
    bare = bare_service("build: .").replace("      - CONNECT_GROUP_ID=g\n", "")
    found = load(CONNECTOR, written(tmp_path, "compose.yaml", bare), {})
    assert (found.worker.group_id, found.worker.offsets.name) == ("1", "positions")
    other = '  other:\n    environment: {CONNECT_BOOTSTRAP_SERVERS: "x:1"}\n'
    found = load(CONNECTOR, written(tmp_path, "compose.yaml", bare + other), {})
    assert found.worker.bootstrap_servers == "x:1"
    image = "  third:\n    image: debezium/connect\n    environment: {BOOTSTRAP_SERVERS: k:1}\n"
    with pytest.raises(ConfigurationError, match="and has 2: other, third"):
        load(CONNECTOR, written(tmp_path, "compose.yaml", bare + other + image), {})


def test_one_variable_without_the_prefix_is_nobodys(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="some of them with names CONNECT_"):
        load(CONNECTOR, written(tmp_path, "connect.env", "BOOTSTRAP_SERVERS=k:9092\nGROUP_ID=\n"), {})
    content = "CONNECT_OFFSET_STORAGE_TOPIC=positions\nBOOTSTRAP_SERVERS=k:9092\n"
    content += "POSTGRES_USER=u\nCONNECT=1\nHTTP_PORT=80\nADMIN_PASSWORD=x\nLOG_LEVEL=info\nREST_PORT=1\n"
    found = load(CONNECTOR, written(tmp_path, "connect.env", content), {})
    assert found.worker.bootstrap_servers == "localhost:9092"
    (said,) = found.notices
    assert said.endswith(
        "BOOTSTRAP_SERVERS: has no effect without its prefix: CONNECT_BOOTSTRAP_SERVERS is the worker's"
    )


def test_a_container_that_was_debeziums(tmp_path: Path) -> None:
    variables = {"BOOTSTRAP_SERVERS": "k:9092", "GROUP_ID": "1", "OFFSET_STORAGE_TOPIC": "positions"}
    found = load(CONNECTOR, None, variables)
    assert found.worker.bootstrap_servers == "localhost:9092"
    (said,) = found.notices
    assert "CONNECT_BOOTSTRAP_SERVERS, CONNECT_GROUP_ID, CONNECT_OFFSET_STORAGE_TOPIC" in said
    # Of another program's variables, and of what stands in the worker's file, nobody wants to hear.
    assert not load(CONNECTOR, None, {"GROUP_ID": "shop"}).notices
    assert not load(CONNECTOR, WORKER, variables).notices


BLOCK = "group.id=connectors\noffset.storage.topic=positions\n# group.id=x\nkey.converter.schemas.enable=false\n"


def test_redpandas_image_takes_a_file_in_one_variable(tmp_path: Path) -> None:
    variables = {"CONNECT_BOOTSTRAP_SERVERS": "k:9092", "CONNECT_CONFIGURATION": BLOCK, "CONNECT_GROUP_ID": "x"}
    service = {"image": "docker.redpanda.com/redpandadata/connectors:latest", "environment": variables}
    worker = written(tmp_path, "compose.yaml", json.dumps({"services": {"connect": service}}))
    for found in (load(CONNECTOR, worker, {}), load(CONNECTOR, None, variables)):
        assert (found.worker.bootstrap_servers, found.worker.group_id) == ("k:9092", "connectors")
        assert found.worker.offsets.name == "positions" and not found.notices
    broken = load(CONNECTOR, None, {"CONNECT_CONFIGURATION": "a=\\u12"})
    assert "CONNECT_CONFIGURATION: no property of that name" in broken.notices[0]


def test_a_log_level_of_an_image_is_no_property_of_a_client(tmp_path: Path) -> None:
    content = "CONNECT_BOOTSTRAP_SERVERS=k:9092\nCONNECT_LOG_LEVEL=info\n"
    for found in (
        load(CONNECTOR, written(tmp_path, "connect.env", content), {}),
        load(CONNECTOR, WORKER, {"CONNECT_LOG_LEVEL": "DEBUG"}),
    ):
        (said,) = found.notices
        assert "has no effect here" in said and "`--debug`" in said


def test_variables_that_are_no_workers(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="some of them with names CONNECT_"):
        load(CONNECTOR, written(tmp_path, "connect.env", "KAFKA_HEAP_OPTS=-Xmx2g\n"), {})


def test_files_in_each_others_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="This is a worker's file, not a connector's"):
        load(WORKER, None, {})
    with pytest.raises(ConfigurationError, match="This is a connector's file, not a worker's"):
        load(CONNECTOR, {**CONNECTOR, "connector.class": "ScyllaConnector"}, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, True) for text in ("true", "True", "yes", "on")],
        *[(text, False) for text in ("false", "FALSE", "no", "Off")],
        *[(text, None) for text in ("", "~", "null")],
        *[
            (text, text)
            for text in ("10.0.0.1:9042", "12:30:45", "2026-11-23", "09", "y", "${env:X}", "0x", "1.2.3", "-x")
        ],
        *[
            ("0x10", 16),
            ("0o14", 12),
            ("014", 12),
            ("1_000", 1000),
            ("-1", -1),
            ("1.5", 1.5),
            (".5", 0.5),
            ("1e3", 1000),
            ("1.0", 1),
            ("1e-3", 0.001),
            ("1e22", 1e22),
        ],
        *[(f'"{text}"', text) for text in ("true", "5", "null")],
    ],
)
def test_plain_words_are_what_kubernetes_takes_them_for(text: str, value: Any) -> None:
    ((found,),) = (document.values() for document in yaml_documents(f"a: {text}\n"))
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("a: &a [*a]", "a: !!python/object:os.system x", "a: " + "[" * 500, "a: \x01", "? [a]\n: b", "a: *x"),
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
    ],
)
def test_yaml_that_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        yaml_documents(text)
