"""A Connect worker as it is deployed: compose files with all that compose puts together, pods, Redpanda's image."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connector.config import Configuration, load, read_documents
from connector.config.env_files import env_file_variables
from connector.config.substitution import Variables, substituted
from connector.errors import ConfigurationError, Problem
from tests.config.files import CLASS, CONNECTOR, WORKER, read, validate

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="cdc" password="{}";'
SASL = "CONNECT_SECURITY_PROTOCOL=SASL_PLAINTEXT\nCONNECT_SASL_MECHANISM=PLAIN\n"


def put(tmp_path: Path, **files: str) -> None:
    for name, content in files.items():
        (tmp_path / name.replace("__", "/").replace("_", ".")).write_text(content)


def compose(tmp_path: Path, services: str, environ: Mapping[str, str] | None = None) -> Configuration:
    put(tmp_path, compose_yaml=f"services:\n{services}")
    return load(CONNECTOR, tmp_path / "compose.yaml", environ or {})


def refused(worker: Path, environ: Mapping[str, str] | None = None) -> Problem:
    (problem,) = validate(CONNECTOR, worker, environ or {})
    return problem


KNOWN = Variables({"A": "a", "EMPTY": ""}, {"A": "beneath", "B": "b"})


@pytest.mark.parametrize(
    ("text", "wanted", "plain"),
    [
        ("no variable", "no variable", "no variable"),
        ("$A-${B}", "${env:A}-b", "a-b"),
        ("${NOWHERE}$NOWHERE", "${env:NOWHERE}${env:NOWHERE}", ""),
        ("p$$99 $${file:/a:b}", "p$99 ${file:/a:b}", "p$99 ${file:/a:b}"),
        ("${EMPTY-x}${EMPTY:-y}${B:-z}", "${env:EMPTY}yb", "yb"),
        ("${NOWHERE:-kafka:9092,$B}", "kafka:9092,b", "kafka:9092,b"),
        ("${NOWHERE:-${ALSO-${B}}}", "b", "b"),
        ("${A:+x}${EMPTY:+y}${EMPTY+z}", "xz", "xz"),
        ("${NOWHERE:?must be there}", "${env:NOWHERE}", ""),
    ],
)
def test_what_compose_puts_in_place_of_variables(text: str, wanted: str, plain: str) -> None:
    assert (substituted(text, KNOWN), substituted(text, KNOWN, plain=True)) == (wanted, plain)


@pytest.mark.parametrize("text", ["a$", "$ 5", "${}", "${A", "${A:-x", "${file:/a:b}", "${A!}", "${A:-" * 5_000])
def test_a_dollar_that_compose_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"a \$"):
        substituted(text, KNOWN)


def test_variables_of_variables_do_not_grow_without_end() -> None:
    lines = "A0=0123456789\n" + "".join(f"A{number}=$A{number - 1}$A{number - 1}\n" for number in range(1, 60))
    found = env_file_variables(lines, Variables({}))
    assert found is not None and max(map(len, found.values())) <= 2**18


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("# nothing\n\n  \n", {}),
        ("export A=1\nB = 2 \r\nC=\n", {"A": "1", "B": "2", "C": ""}),
        ("A=x # said\nB=x#y\nC=# said\nD='x # y' # said\n", {"A": "x", "B": "x#y", "C": "", "D": "x # y"}),
        ('A=login user="a" password="b # c";\n', {"A": 'login user="a" password="b # c";'}),
        (
            'A="user=\\"a\\" \\\\ \\n"\nB="two\nlines"\nC=\'$A\'\n',
            {"A": 'user="a" \\ \n', "B": "two\nlines", "C": "$A"},
        ),
        ('A="x y="1";"\n', {"A": 'x y="1";'}),
        (
            'A="CORP\\user"\nB="p\\$OF-$$OF-${OF}"\nC="\\$ $"\n',
            {"A": "CORP\\user", "B": "p$OF-$OF-${env:OF}", "C": "$ $"},
        ),
        ("A='it\\'s \\n' # said\nB=p$$x $\n", {"A": "it's \\n", "B": "p$$x $"}),
        ("A=1\nB=${A}$A-$OF\nOF\nNOWHERE\n", {"A": "1", "B": "11-${env:OF}", "OF": "${env:OF}"}),
        ("A=p$\nB=${file:/a:b}\n", {"A": "p$", "B": "${file:/a:b}"}),
        ("A=1\nsome words\n", None),
        # As `dotenv/parser.go` of compose-go 2 has it.
        (
            "A=1\nb: 2\nspring.kafka.url=k:1\nmy-own[0]: x # said\n",
            {"A": "1", "b": "2", "spring.kafka.url": "k:1", "my-own[0]": "x"},
        ),
    ],
)
def test_files_of_variables_are_read_as_compose_reads_them(lines: str, wanted: dict[str, str] | None) -> None:
    assert env_file_variables(lines, Variables({"OF": "x"})) == wanted


def test_the_variables_of_a_service_come_from_all_places_that_compose_looks_at(tmp_path: Path) -> None:
    put(
        tmp_path,
        _env="TOPIC=positions\n",
        first_env=f"CONNECT_GROUP_ID=first\n{SASL}CONNECT_BOOTSTRAP_SERVERS=first:1\n",
        second_env="CONNECT_GROUP_ID=second\nCONNECT_BOOTSTRAP_SERVERS=$KAFKA\n",
    )
    services = """
  kafka: {image: kafka, env_file: missing.env}
  connect:
    env_file: [first.env, {path: second.env}, {path: missing.env, required: false}]
    environment:
      CONNECT_GROUP_ID: over
      CONNECT_OFFSET_STORAGE_TOPIC: ${TOPIC}
      CONNECT_REST_ADVERTISED_HOST_NAME: ${HOSTNAME_OF_NOBODY}
      CONNECT_SASL_JAAS_CONFIG: 'x.PlainLoginModule required username="cdc" password="p$$99";'
      CONNECT_CLIENT_ID:
"""
    found = compose(tmp_path, services, {"KAFKA": "k:9092"})
    assert (found.worker.bootstrap_servers, found.worker.group_id) == ("k:9092", "over")
    assert found.worker.offsets.name == "positions"
    assert found.kafka.producer["sasl.password"] == "p$99"
    assert "rest.advertised.host.name" not in found.worker.given and "client.id" not in found.worker.given
    problem = refused(tmp_path / "compose.yaml")
    assert problem.property == "bootstrap.servers"
    assert problem.problem == "${env:KAFKA}: the environment variable KAFKA is not set"


def test_an_environment_counts_over_files_wherever_both_are_said(tmp_path: Path) -> None:
    put(
        tmp_path,
        over_env="CONNECT_GROUP_ID=file\nCONNECT_OFFSET_STORAGE_TOPIC=file\n",
        base_yaml="services: {base: {environment: {CONNECT_GROUP_ID: base, CONNECT_BOOTSTRAP_SERVERS: 'k:1'}}}\n",
        compose_override_yaml="services: {connect: {env_file: over.env}}\n",
    )
    services = "  connect:\n    extends: {file: base.yaml, service: base}\n    env_file: over.env\n"
    found = compose(tmp_path, services)
    assert (found.worker.group_id, found.worker.offsets.name) == ("base", "file")


def test_values_and_services_may_be_other_than_texts(tmp_path: Path) -> None:
    put(tmp_path, compose_override_yaml="[]\n")
    services = """
  nothing:
  connect:
    environment: {CONNECT_BOOTSTRAP_SERVERS: "k:1", CONNECT_TOPIC_CREATION_ENABLE: true, CONNECT_REST_PORT: 8083}
"""
    put(tmp_path, compose_yaml=f"services:\n{services}")
    (document,) = read_documents(tmp_path / "compose.yaml", "worker", {})
    assert document.texts == {"bootstrap.servers": "k:1", "topic.creation.enable": "true", "rest.port": "8083"}


def test_a_file_may_be_taken_as_it_is(tmp_path: Path) -> None:
    lines = '# said\n\nCONNECT_BOOTSTRAP_SERVERS=$k:1\n CONNECT_GROUP_ID="g" # said\nCONNECT_CLIENT_ID\nNOWHERE\n'
    put(tmp_path, raw_env=lines, compose_yaml="services: {connect: {env_file: {path: raw.env, format: raw}}}\n")
    (document,) = read_documents(tmp_path / "compose.yaml", "worker", {"CONNECT_CLIENT_ID": "c"})
    assert document.texts == {
        "bootstrap.servers": "$k:1",
        "client.id": "${env:CONNECT_CLIENT_ID}",
        "group.id": '"g" # said',
    }


def test_a_list_hands_on_what_has_no_value(tmp_path: Path) -> None:
    services = '  connect:\n    environment: ["CONNECT_BOOTSTRAP_SERVERS=k:1", CONNECT_GROUP_ID, CONNECT_CLIENT_ID]\n'
    found = compose(tmp_path, services, {"CONNECT_GROUP_ID": "handed on"})
    assert (found.worker.group_id, "client.id" in found.worker.given) == ("handed on", False)


def test_what_compose_would_not_read_is_told_by_its_place(tmp_path: Path) -> None:
    worker = tmp_path / "compose.yaml"
    put(tmp_path, compose_yaml="services:\n  connect: {env_file: gone.env}\n", bad_env="some words\n")
    first, second = validate(CONNECTOR, worker, {})
    assert first.problem == "Must have one service with CONNECT_ variables, and has 0: none"
    assert "CONNECT_BOOTSTRAP_SERVERS in its environment or env_file" in str(first.suggestion)
    assert second.problem == f"{tmp_path / 'gone.env'} cannot be read: There is no such file"
    mounts = "volumes: [./connect.properties:/etc/c.properties:ro, ./data:/data, {source: other.properties}]"
    put(tmp_path, compose_yaml=f"services:\n  connect: {{ {mounts} }}\n")
    assert refused(worker).suggestion == "give the file that a service mounts: ./connect.properties, other.properties"
    kafka = "environment: {CONNECT_BOOTSTRAP_SERVERS: 'k:1'}"
    put(tmp_path, compose_yaml=f"services:\n  connect:\n    env_file: bad.env\n    {kafka}\n")
    assert refused(worker).problem.endswith("bad.env must hold lines NAME=value alone")
    put(
        tmp_path,
        compose_yaml="services: {connect: {environment: {CONNECT_SASL_PASSWORD: secret$, CONNECT_GROUP_ID: g}}}\n",
    )
    problem = refused(worker)
    assert (problem.property, problem.problem) == ("CONNECT_SASL_PASSWORD", "Has a $ that begins no variable")
    assert problem.value is None and "`$$` stands for a `$`" in str(problem.suggestion)


def test_services_are_extended_and_overridden(tmp_path: Path) -> None:
    base = {"CONNECT_GROUP_ID": "base", "CONNECT_BOOTSTRAP_SERVERS": "base:1", "CONNECT_CLIENT_ID": "base"}
    put(
        tmp_path,
        base_json=json.dumps({"services": {"base": {"environment": base}}}),
        compose_override_yml="services: {connect: {environment: {CONNECT_OFFSET_STORAGE_TOPIC: overridden}}}\n",
    )
    services = """
  connect:
    extends: {file: base.json, service: base}
    environment: {CONNECT_GROUP_ID: own, CONNECT_OFFSET_STORAGE_TOPIC: own}
"""
    found = compose(tmp_path, services)
    assert (found.worker.bootstrap_servers, found.worker.group_id) == ("base:1", "own")
    assert found.worker.offsets.name == "overridden"
    assert [notice for notice in found.notices if "compose.override.yml: is read over compose.yaml" in notice]
    put(tmp_path, other_yaml=(tmp_path / "compose.yaml").read_text())
    assert load(CONNECTOR, tmp_path / "other.yaml", {}).worker.offsets.name == "own", "of default names only"
    for extends, said in (
        ("gone", "There is no service gone"),
        ("{file: gone.yaml}", "gone.yaml, which is no compose"),
    ):
        put(tmp_path, other_yaml=services.replace("{file: base.json, service: base}", extends).join(("services:", "")))
        assert said in refused(tmp_path / "other.yaml").problem
    circle = "services:\n  connect: {extends: connect, environment: {CONNECT_BOOTSTRAP_SERVERS: 'k:1'}}\n"
    put(tmp_path, other_yaml=circle)
    assert load(CONNECTOR, tmp_path / "other.yaml", {}).worker.bootstrap_servers == "k:1"


def test_several_services_of_one_cluster_are_one_worker(tmp_path: Path) -> None:
    worker = "environment: [CONNECT_BOOTSTRAP_SERVERS=k:1, CONNECT_GROUP_ID=g{}, CONNECT_REST_ADVERTISED_HOST_NAME={}]"
    ui = "  ui:\n    environment: {CONNECT_URL: 'http://connect-1:8083'}\n"
    one = f"  connect-1:\n    {worker.format('', 1)}\n"
    found = compose(tmp_path, f"{ui}{one}  connect-2:\n    {worker.format('', 2)}\n")
    assert found.worker.group_id == "g"
    assert [notice for notice in found.notices if "services.connect-2: has no effect here" in notice]
    with pytest.raises(ConfigurationError, match=r"has 2: connect-1, connect-2 .*they differ in group\.id\)"):
        compose(tmp_path, f"{ui}{one}  connect-2:\n    {worker.format('2', 2)}\n")


def test_an_env_file_alone(tmp_path: Path) -> None:
    put(tmp_path, connect_env=f"{SASL}CONNECT_BOOTSTRAP_SERVERS=${{KAFKA}} # said\nCONNECT_GROUP_ID=${{G:-g}}\n")
    with (tmp_path / "connect.env").open("a") as file:
        # As `docker run --env-file` takes it.
        file.write(f"CONNECT_SASL_JAAS_CONFIG={JAAS.format('p$x # y')}\n")
        file.write('spring.kafka.url=k:2\nCONNECT_CLIENT_RACK="\\${KAFKA}-${G:-g}"\n')
    found = load(CONNECTOR, tmp_path / "connect.env", {"KAFKA": "k:1"})
    assert (found.worker.bootstrap_servers, found.worker.group_id) == ("k:1", "g")
    assert found.kafka.consumer["client.rack"] == "${KAFKA}-g"
    assert found.kafka.producer["sasl.password"] == "p$x # y"
    assert "KAFKA is not set" in refused(tmp_path / "connect.env").problem


# -- Kubernetes ------------------------------------------------------------------------------------------------

ENV: list[dict[str, Any]] = [
    {"name": "NAMESPACE", "value": "prod"},
    {"name": "CONNECT_BOOTSTRAP_SERVERS", "value": "kafka.$(NAMESPACE).svc:9092,$$(NAMESPACE):1,$(LATER)"},
    {"name": "LATER", "value": "x"},
    {"name": "CONNECT_GROUP_ID", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "group"}}},
    {"name": "CONNECT_REST_ADVERTISED_HOST_NAME", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    {"name": "CONNECT_SASL_JAAS_CONFIG", "valueFrom": {"secretKeyRef": {"name": "login", "key": "jaas"}}},
]


def resource(kind: str, name: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **members}


def deployment(kind: str = "Deployment") -> dict[str, Any]:
    container = {"name": "connect", "env": ENV, "envFrom": [{"configMapRef": {"name": "settings"}}]}
    spec = {"containers": [{"name": "sidecar", "env": [{"name": "CONNECT_URL", "value": "http://x"}]}, container]}
    return resource(kind, "connect", spec=spec if kind == "Pod" else {"template": {"spec": spec}})


SETTINGS = resource("ConfigMap", "settings", data={"CONNECT_OFFSET_STORAGE_TOPIC": "positions", "group": "g"})


def stored(tmp_path: Path, *resources: dict[str, Any]) -> Path:
    (tmp_path / "all.yaml").write_text("\n---\n".join(map(json.dumps, resources)))
    return tmp_path / "all.yaml"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Pod"])
def test_a_worker_of_pods(tmp_path: Path, kind: str) -> None:
    worker = stored(tmp_path, deployment(kind), resource("Service", "connect"), SETTINGS)
    (document,) = read_documents(worker, "worker", {})
    assert document.texts == {
        "bootstrap.servers": "kafka.prod.svc:9092,$(NAMESPACE):1,$(LATER)",
        "group.id": "g",
        "offset.storage.topic": "positions",
        "sasl.jaas.config": "${env:CONNECT_SASL_JAAS_CONFIG}",
    }
    text = "stands elsewhere (Secret login, key jaas): it is taken from the variable CONNECT_SASL_JAAS_CONFIG here"
    assert document.notes == [("sasl.jaas.config", text)]
    assert "CONNECT_SASL_JAAS_CONFIG is not set" in "".join(one.problem for one in validate(CONNECTOR, worker, {}))


def test_maps_that_the_file_does_not_have_are_told(tmp_path: Path) -> None:
    sources = [{"secretRef": {"name": "login"}}, {"configMapRef": {"name": "settings"}}]
    container = {"env": [{"name": "CONNECT_BOOTSTRAP_SERVERS", "value": "k:1"}], "envFrom": sources}
    pod = resource("Pod", "connect", spec={"containers": [container]})
    (document,) = read_documents(stored(tmp_path, pod, SETTINGS), "worker", {})
    text = "is not in this file: CONNECT_ variables that it has are taken from the environment here"
    assert document.notes == [("envFrom Secret login", text)]


def test_nothing_is_no_word(tmp_path: Path) -> None:
    env = [{"name": "CONNECT_BOOTSTRAP_SERVERS", "value": "k:1"}, {"name": "CONNECT_CLIENT_ID", "value": None}]
    source = {"env": env, "envFrom": [{"configMapRef": {"name": "settings"}}]}
    pod = resource("Pod", "connect", spec={"containers": [source]})
    settings = resource("ConfigMap", "settings", data={"CONNECT_GROUP_ID": None})
    (document,) = read_documents(stored(tmp_path, pod, settings), "worker", {})
    assert document.texts == {"bootstrap.servers": "k:1", "client.id": "", "group.id": ""}


def test_secrets_beside_the_pods_are_read_and_not_shown(tmp_path: Path) -> None:
    encoded = base64.b64encode(JAAS.format("hush hush").encode()).decode()
    login = resource("Secret", "login", data={"jaas": encoded, "store": base64.b64encode(b"\xff\xfe").decode()})
    (document,) = read_documents(stored(tmp_path, deployment(), SETTINGS, login), "worker", {})
    assert document.texts["sasl.jaas.config"] == JAAS.format("hush hush")
    assert document.masked("sasl.jaas.config", False) == "********"


def test_files_in_a_map_are_a_worker_and_connectors(tmp_path: Path) -> None:
    files = {
        "connect-distributed.properties": "bootstrap.servers=k:1\ngroup.id=g\noffset.storage.topic=positions\n",
        "orders.json": json.dumps({"name": "orders", "config": {**CONNECTOR, "connector.class": "ScyllaConnector"}}),
        "log4j.properties": "log4j.rootLogger=INFO, stdout\nlog4j.logger.connector.class=WARN\n",
        "start.sh": "#!/bin/sh\nexec connect-distributed bootstrap.servers\n",
        "metrics.yaml": "rules: [{pattern: 'connector.class, group.id'}]\n",
        "post.sh": 'curl -d \'{"name": "c", "config": {"connector.class": "C"}}\' http://c\n',
    }
    both = stored(tmp_path, resource("ConfigMap", "files", data=files))
    assert [each.file for each in read_documents(both, "file")] == [
        f"{both} (files/connect-distributed.properties)",
        f"{both} (files/orders.json)",
        f"{both} (files/post.sh)",
    ]
    del files["post.sh"]
    both = stored(tmp_path, resource("ConfigMap", "files", data=files))
    found = load(both, both, {})
    assert (found.connector.name, found.worker.group_id) == ("orders", "g")
    broken = stored(tmp_path, resource("ConfigMap", "files", data={"c.json": '{"connector.class": }'}))
    (problem,) = validate(broken, {"bootstrap.servers": "k:1"}, {})
    assert problem.property == "files/c.json" and "Is not JSON" in problem.problem


def test_a_map_of_variables_is_a_worker_where_no_pod_is(tmp_path: Path) -> None:
    data = {"CONNECT_BOOTSTRAP_SERVERS": "k:1", "CONNECT_GROUP_ID": "g"}
    one = {"apiVersion": "v1", "kind": "List", "items": [resource("ConfigMap", "settings", data=data)]}
    assert load(CONNECTOR, stored(tmp_path, one), {}).worker.group_id == "g"


def test_confluents_operator(tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "configOverrides": {"server": ["group.id=g", "offset.storage.topic=positions"]},
        "dependencies": {"kafka": {"bootstrapEndpoint": "kafka:9071"}},
    }
    found = load(CONNECTOR, stored(tmp_path, resource("Connect", "connect", spec=spec)), {})
    assert (found.worker.bootstrap_servers, found.worker.group_id) == ("kafka:9071", "g")
    spec["dependencies"]["kafka"]["authentication"] = {"type": "plain", "jaasConfig": {"secretRef": "x"}}
    problem = refused(stored(tmp_path, resource("Connect", "connect", spec=spec)))
    assert "sasl.jaas.config in a worker file" in str(problem.suggestion)


def test_a_connector_of_conduktor(tmp_path: Path) -> None:
    metadata = {"cluster": "mine", "connectCluster": "connect", "name": "orders", "autoRestart": {"enabled": True}}
    spec = {"config": {**CONNECTOR, "connector.class": CLASS, "tasks.max": "2"}}
    found = {"apiVersion": "kafka/v2", "kind": "Connector", "metadata": metadata, "spec": spec}
    connector = load(stored(tmp_path, found), WORKER, {}).connector
    assert (connector.name, connector.tasks_max) == ("orders", 2)


OF_CLOUDS: dict[str, dict[str, Any]] = {
    "of AWS": {"forProvider": {"connectorConfiguration": {**CONNECTOR, "connector.class": CLASS}, "region": "x"}},
    "of Google": {"forProvider": {"configs": {**CONNECTOR, "connector.class": CLASS}}},
    "of Confluent Cloud": {"forProvider": {"configNonsensitive": {**CONNECTOR, "connector.class": CLASS}}},
    "of Aiven": {"project": "p", "connectorClass": CLASS, "userConfig": CONNECTOR},
}


@pytest.mark.parametrize("whose", OF_CLOUDS)
def test_connectors_that_an_operator_makes_in_a_cloud(tmp_path: Path, whose: str) -> None:
    kind = "KafkaConnector" if whose == "of Aiven" else "Connector"
    connector = load(stored(tmp_path, resource(kind, "orders", spec=OF_CLOUDS[whose])), WORKER, {}).connector
    assert (connector.name, connector.reading.tables[0].name) == ("orders", "orders")


def test_a_connector_whose_properties_are_in_a_secret(tmp_path: Path) -> None:
    """As KubeDB has them: the resource holds none."""
    lines = "".join(f"{name}={text}\n" for name, text in CONNECTOR.items())
    found = resource("Connector", "orders", spec={"configSecret": {"name": "c"}})
    secret = resource("Secret", "c", stringData={"config.properties": lines})
    both = {"apiVersion": "v1", "kind": "List", "items": [found, secret]}
    assert load(stored(tmp_path, both), WORKER, {}).connector.name == "orders"
    (problem,) = validate(stored(tmp_path, found), WORKER, {})
    assert problem.problem == "Holds no connector and no worker: Connector"


# -- Redpanda's image ------------------------------------------------------------------------------------------


def test_logins_and_certificates_of_redpandas_image_are_its_files() -> None:
    variables = {
        "CONNECT_BOOTSTRAP_SERVERS": "k:1",
        "CONNECT_CONFIGURATION": "group.id=g\noffset.storage.topic=positions\nclient.rack=block\n",
        "CONNECT_ADDITIONAL_CONFIGURATION": "client.rack=additional, producer.linger.ms=3",
        "CONNECT_TLS_ENABLED": "true",
        "CONNECT_TRUSTED_CERTS": "tls/ca.crt;more.crt",
        "CONNECT_TLS_AUTH_CERT": "tls/client.crt",
        "CONNECT_TLS_AUTH_KEY": "tls/client.key",
        "CONNECT_SASL_MECHANISM": "scram-sha-256",
        "CONNECT_SASL_USERNAME": "cdc",
        "CONNECT_SASL_PASSWORD_FILE": "login/password",
        "CONNECT_METRICS_ENABLED": "false",
    }
    found = validate(CONNECTOR, None, variables)
    paths = {one.problem.partition(": the file ")[2].partition(" cannot")[0] for one in found}
    certificates = {"tls/ca.crt", "more.crt", "tls/client.crt", "tls/client.key"}
    wanted = {f"/opt/kafka/connect-certs/{name}" for name in certificates}
    assert paths == {*wanted, "/opt/kafka/connect-password/login/password"}
    plain = {name: text for name, text in variables.items() if "TLS" not in name and "CERT" not in name}
    del plain["CONNECT_SASL_PASSWORD_FILE"]
    plain |= {"CONNECT_SASL_PASSWORD": "hush", "CONNECT_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    configuration = load(CONNECTOR, None, plain)
    assert configuration.kafka.consumer["client.rack"] == "additional" and not configuration.notices
    login = {**plain, "CONNECT_SASL_PASSWORD_FILE": "login/password"}
    del login["CONNECT_SECURITY_PROTOCOL"], login["CONNECT_SASL_PASSWORD"]
    (problem,) = validate(CONNECTOR, None, login)
    assert (problem.property, problem.file) == ("sasl.password", "environment variable CONNECT_SASL_PASSWORD_FILE")
    assert not validate(CONNECTOR, None, {"CONNECT_TLS_ENABLED": "false", "CONNECT_BOOTSTRAP_SERVERS": "k:1"})


# -- single containers -----------------------------------------------------------------------------------------

TASK: dict[str, Any] = {
    "family": "connect",
    "containerDefinitions": [
        {"name": "logs", "image": "fluent/fluent-bit", "environment": [{"name": "A", "value": "b"}]},
        {
            "name": "connect",
            "image": "confluentinc/cp-kafka-connect:7.8.0",
            "environment": [
                {"name": "CONNECT_BOOTSTRAP_SERVERS", "value": "k:9092"},
                {"name": "CONNECT_GROUP_ID", "value": "g"},
            ],
            "secrets": [{"name": "CONNECT_SASL_JAAS_CONFIG", "valueFrom": "arn:x"}],
        },
    ],
}


@pytest.mark.parametrize("content", [TASK, {"taskDefinition": TASK}])
def test_a_task_definition_of_ecs_is_a_worker(tmp_path: Path, content: dict[str, Any]) -> None:
    (document,) = read(tmp_path, "task.json", json.dumps(content))
    assert document.texts == {
        "bootstrap.servers": "k:9092",
        "group.id": "g",
        "sasl.jaas.config": "${env:CONNECT_SASL_JAAS_CONFIG}",
    }
    said = "stands elsewhere (arn:x): it is taken from the variable CONNECT_SASL_JAAS_CONFIG here"
    assert document.notes == [("sasl.jaas.config", said)]


def test_what_docker_says_of_a_container_is_a_worker(tmp_path: Path) -> None:
    variables = ["BOOTSTRAP_SERVERS=k:9092", "CONNECT_CLIENT_RACK=a=b", "PATH=/bin"]
    inspected = {"Name": "/connect", "Config": {"Image": "debezium/connect:2.7", "Env": variables}}
    (document,) = read(tmp_path, "connect.json", json.dumps([inspected]))
    assert document.texts == {"bootstrap.servers": "k:9092", "client.rack": "a=b"}
    (other,) = read(tmp_path, "other.json", json.dumps([{"Name": "/db", "Config": {"Env": ["PATH=/bin", None]}}]))
    assert "bootstrap.servers" not in other.texts
