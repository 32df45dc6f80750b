"""Loading: forms of a file, the environment, references to secrets, what comes out."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from connector.config import ContactPoint, Secret, load
from connector.errors import ConfigurationError
from connector.table_name import TableName
from tests.config.files import CONNECTOR, WORKER, loaded, problem, problems, validate


def test_posted_and_flat_files_give_the_same() -> None:
    flat = dict(CONNECTOR)
    name = flat["name"]
    posted = {"name": name, "config": {key: value for key, value in flat.items() if key != "name"}}
    assert load(flat, WORKER, {}) == load(posted, WORKER, {})


def test_values_may_be_texts_numbers_and_booleans() -> None:
    texts = loaded({"tasks.max": "3", "tombstones.on.delete": "FALSE", "scylla.confidence.window.size": " 500 "})
    typed = loaded({"tasks.max": 3, "tombstones.on.delete": False, "scylla.confidence.window.size": 500})
    assert texts.connector.tasks_max == typed.connector.tasks_max == 3
    assert texts.connector.output.tombstones is typed.connector.output.tombstones is False
    assert texts.connector.reading.confidence_ms == 500


def test_around_a_text_blanks_go_that_java_takes_away() -> None:
    """A name that was another one here than for those who asked for it was never found again."""
    assert loaded({"name": " \t orders\x1f"}).connector.name == "orders"
    assert loaded({"name": "\u00a0orders\u2028"}).connector.name == "\u00a0orders\u2028"


def test_typed_access_by_java_name_and_by_attribute() -> None:
    configuration = loaded({"scylla.cluster.ip.addresses": "10.0.0.1 , [::1]:9142,2001:db8::1"})
    connector = configuration.connector
    assert connector.connection.contact_points == (
        ContactPoint("10.0.0.1", 9042),
        ContactPoint("::1", 9142),
        ContactPoint("2001:db8::1", 9042),
    )
    assert connector["scylla.table.names"] == connector.reading.tables == (TableName("shop", "orders"),)
    assert connector.connection.fetch_size == 5000
    assert connector["scylla.query.options.fetch.size"] == 0
    assert configuration.group == "workers-orders"
    assert configuration.worker.offsets.name == "positions"
    assert connector.delivery.offset_topic == "positions"
    assert loaded({"offsets.storage.topic": "mine"}).connector.delivery.offset_topic == "mine"


def test_names_of_topics() -> None:
    names = loaded().connector.output.names
    assert names.data_topic("shop", "orders") == "shop.shop.orders"
    assert names.range_deletes_topic("shop", "orders") == "shop.shop.orders.range-deletes"
    assert names.heartbeat_topic() == "__debezium-heartbeat.shop"
    assert names.schema_topic == "shop.schemas"
    assert names.dead_letter_topic == "shop.dead-letters"
    assert loaded({"scylla.schema.topic": ""}).connector.output.schema_topic == ""
    long = TableName("k" * 100, "t" * 192)
    assert loaded({"scylla.table.names": str(long)}).connector.reading.tables == (long,), "as ScyllaDB takes them"
    assert names.data_topic(*long) == f"shop.{long}"[:249], "as Debezium cuts it"
    odd = loaded({"topic.prefix": "1-a.b"}).connector.output.names
    assert odd.data_topic("k", "T_1") == "1-a.b.k.T_1"
    assert odd.schema_base("k", "T_1") == "_1_a.b.k.T_1"


def test_a_file_that_is_not_json_is_named_with_line_and_column(tmp_path: Path) -> None:
    connector, worker = tmp_path / "c.json", tmp_path / "w.json"
    connector.write_text('{"name": "a",\n "config": {,}}')
    worker.write_text(json.dumps({"groupid": "x"}))
    found = validate(connector, worker, {})
    assert found[0].file == str(connector)
    assert "line 2, column 13" in found[0].problem
    # The other file is looked at all the same.
    assert [(one.file, one.property) for one in found[1:]] == [(str(worker), "groupid")]


@pytest.mark.parametrize("content", ["[]", '"text"', "3"])
def test_a_file_that_is_no_object(tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    assert [one.problem for one in validate(path, WORKER, {})] == ["Must be an object of properties"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (found,) = validate(tmp_path / "none.json", WORKER, {})
    assert found.problem == "There is no such file"


def test_a_property_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    text = json.dumps(CONNECTOR)
    path.write_text(text[:-1] + ', "topic.prefix": "b"}')
    (found,) = validate(path, WORKER, {})
    assert (found.property, found.problem, found.suggestion) == ("topic.prefix", "Is given twice", "on line 1")
    path.write_text(text[:-1] + ',\n"topic.prefix" : "b"}')
    assert [one.suggestion for one in validate(path, WORKER, {})] == ["on lines 1 and 2"]
    # Which of them is it?
    path.write_text(f'[{text[:-1]},\n"topic.prefix": "b"}}, {{"name": "d", "topic.prefix": "c"}}]')
    assert {one.suggestion for one in validate(path, WORKER, {}) if one.problem == "Is given twice"} <= {None}
    path.write_text(text[:-1] + ', "topic.prefix": "shop"}')
    assert not validate(path, WORKER, {}), "twice the same, as in Kafka Connect"
    path.write_text(text[:-1] + ', "_comment": "of old", "//": "a", "_comment": "of new", "//": "b"}')
    assert not validate(path, WORKER, {}), "remarks, which are no properties"


def test_a_value_that_is_an_object() -> None:
    assert problem({"transforms": {"a": 1}}).property == "transforms"
    assert loaded({"scylla.table.names": ["a.b", "c.d"]}).connector.reading.tables[1] == TableName("c", "d")


def test_the_environment_overrides_the_worker_file() -> None:
    environ = {"CONNECT_BOOTSTRAP_SERVERS": "kafka:1", "CONNECT_PRODUCER_LINGER_MS": "7", "HOME": "/"}
    configuration = loaded(environ=environ)
    assert configuration.worker.bootstrap_servers == "kafka:1"
    assert configuration.kafka.producer["linger.ms"] == "7"


def test_a_wrong_variable_is_named_as_such() -> None:
    found = problems(environ={"CONNECT_SESSION_TIMEOUT_MS": "soon", "CONNECT_BOOTSTRAP_SERVRES": "x"})
    places = {one.file: one for one in found}
    assert places["environment variable CONNECT_SESSION_TIMEOUT_MS"].value == "soon"
    typo = places["environment variable CONNECT_BOOTSTRAP_SERVRES"]
    assert typo.suggestion == "did you mean CONNECT_BOOTSTRAP_SERVERS?"
    assert loaded(environ={"CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN"}).notices


def test_references_are_resolved(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("# comment\nuser: ann\npassword = p\\u00e4ss\\\n   word\nodd\\ key=1\n")
    (tmp_path / "token").write_text("tok\n")
    configuration = loaded(
        {
            "scylla.user": f"${{file:{secrets}:user}}",
            "scylla.password": f"${{file:{secrets}:password}}",
            "topic.prefix": "${env:PREFIX}-x",
            "scylla.local.dc": f"${{directory:{tmp_path}:token}}",
        },
        environ={"PREFIX": "p"},
    )
    connection = configuration.connector.connection
    assert connection.user == "ann"
    assert connection.password is not None and connection.password.reveal() == "pässword"
    assert configuration.connector.output.topic_prefix == "p-x"
    assert connection.local_dc == "tok"


def test_a_path_ends_at_the_first_colon_as_in_java(tmp_path: Path) -> None:
    """A key may have colons, as names of secrets do; a path with one is read where no other reading gives anything."""
    (tmp_path / "secrets").write_text("shop\\:db\\:user=ann\n")
    (tmp_path / "b:c").write_text("user=ben\n")
    reference = {"scylla.user": f"${{file:{tmp_path}/secrets:shop:db:user}}", "scylla.password": "p"}
    assert loaded(reference).connector.connection.user == "ann"
    reference["scylla.user"] = f"${{file:{tmp_path}/b:c:user}}"
    assert loaded(reference).connector.connection.user == "ben"
    (found,) = problems({**reference, "scylla.user": f"${{file:{tmp_path}/secrets:shop:no}}"})
    assert found.problem.endswith(f"the file {tmp_path}/secrets has no key shop:no")


def test_providers_named_by_the_worker_file(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("k=value")
    named = {
        "config.providers": "secrets",
        "config.providers.secrets.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    assert loaded({"topic.prefix": f"${{secrets:{tmp_path}/s:k}}"}, named).connector.output.topic_prefix == "value"


def test_references_that_cannot_be_resolved_are_told_once() -> None:
    found = problems(
        {"scylla.user": "${env:NO_USER}", "scylla.password": "${vault:a:b}", "tasks.max": "${file:/nowhere:x}"}
    )
    assert sorted(one.property for one in found) == ["scylla.password", "scylla.user", "tasks.max"]
    assert all(one.problem for one in found)
    assert next(one for one in found if one.property == "scylla.user").value is None


def test_secrets_stay_out_of_everything() -> None:
    secret = "hunter2-hunter2"
    environ = {"SECRET": secret}
    wrong = problems(
        {
            "scylla.password": secret,
            "scylla.pasword": secret,
            "scylla.user": "u",
            "tasks.max": "${env:SECRET}",
            "scylla.table.names": "${env:SECRET}",
            "value.converter": "AvroConverter",
            "value.converter.schema.registry.url": f"http://u:{secret}@127.0.0.1:1, ftp://u:{secret}@h",
            "value.converter.basic.auth.user.info": secret,
            "producer.override.sasl.jaas.config": secret,
            "producer.override.security.protocol": "SASL_SSL",
            "producer.override.sasl.mechanism": "PLAIN",
            "producer.override.ssl.keystore.pasword": secret,
        },
        {"ssl.truststore.password": secret, "sasl.jaas.config": f'Plain required password="{secret}'},
        environ,
    )
    assert len(wrong) == 7
    assert secret not in repr(wrong) and secret not in str(ConfigurationError(wrong))
    right = loaded(
        {
            "scylla.user": "u",
            "scylla.password": "${env:SECRET}",
            "value.converter": "AvroConverter",
            "value.converter.schema.registry.url": f"http://u:{secret}@127.0.0.1:1",
        },
        {
            "sasl.jaas.config": f'a.PlainLoginModule required username="u" password="{secret}";',
            "sasl.mechanism": "PLAIN",
            "security.protocol": "SASL_PLAINTEXT",
        },
        environ,
    )
    assert right.kafka.producer["sasl.password"] == secret
    assert secret not in repr(right) and secret not in str(right.notices)


def test_unknown_properties_that_look_like_secrets_are_masked() -> None:
    refused = {"config.unknown": "error"}
    secrets = {"my.api.key": "x", "some.token": "x", "a.client.secret": "x"}
    assert {one.value for one in problems({**secrets, **refused})} == {"********"}
    # Whatever a name that nobody knows was meant to be, it may have been a password.
    assert problem({"my.own": "x", **refused}).value is None
    assert "hidden" not in str(loaded({"my.own": "hidden"}).notices)


def test_configuration_crosses_process_borders() -> None:
    configuration = loaded({"scylla.user": "u", "scylla.password": "p"})
    again = pickle.loads(pickle.dumps(configuration))
    assert again == configuration
    assert again.connector.connection.password == Secret("p")


def test_fingerprints_tell_configurations_apart() -> None:
    one = loaded()
    assert one.fingerprint() == loaded().fingerprint()
    assert one.fingerprint() != loaded({"scylla.table.names": "shop.other"}).fingerprint()
    assert one.fingerprint() == loaded(worker={"group.instance.id": "a"}).fingerprint()


def test_what_has_no_effect_is_said_once_with_the_reason() -> None:
    notices = loaded(
        {"max.queue.size": 9000}, {"plugin.path": "/x", "listeners": "http://:8083", "rest.port": 1}
    ).notices
    assert sorted(line.split(": ")[1] for line in notices) == ["listeners, rest.port", "max.queue.size", "plugin.path"]
    assert all("no effect" in line for line in notices)


@pytest.mark.parametrize("refers", ["scylla.password", "ssl.key.password", None])
def test_a_provider_of_the_jvm_matters_where_something_refers_to_it(refers: str | None) -> None:
    worker = {
        "config.providers": "ssm",
        "config.providers.ssm.class": "com.amazonaws.kafka.config.providers.SsmParamStoreConfigProvider",
    }
    connector: dict[str, str] = {}
    if refers is None:
        (notice,) = (each for each in loaded(connector, worker).notices if "config.providers.ssm.class" in each)
        assert "has no effect: nothing refers to it" in notice
        return
    (connector if refers.startswith("scylla") else worker)[refers] = "${ssm::/app/pw}"
    found = problem(connector, worker)
    assert found.property == "config.providers.ssm.class"
    assert found.problem == "This provider of secrets is not supported"


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${file:{folder}/secrets}", "it names no key, or no file: ${file:/path:key}"),
        ("${file::shop}", "it names no key, or no file: ${file:/path:key}"),
        ("${file:{folder}/secrets:}", "it names no key in {folder}/secrets: ${file:{folder}/secrets:key}"),
        ("${file:{folder}:shop}", "the file {folder} cannot be read: Is a directory"),
        ("${directory:{folder}}", "it names no file, or no folder: ${directory:/path:key}"),
        ("${directory:{folder}:}", "it names no file in {folder}: ${directory:{folder}:key}"),
        ("${env:}", "it names no variable: ${env:NAME}"),
        (
            "${env:NOWHERE:-word}",
            "the environment variable -word is not set: a variable has neither a path nor a default: ${env:NAME}",
        ),
        ("${file:{folder}/secrets:${env:HOME}}", "a reference inside of another one is not resolved"),
    ],
)
def test_a_reference_that_lacks_a_part_is_told_which(tmp_path: Path, reference: str, why: str) -> None:
    (tmp_path / "secrets").write_text("shop=word\n")
    reference, why = (text.replace("{folder}", str(tmp_path)) for text in (reference, why))
    with pytest.raises(ConfigurationError) as caught:
        load({**CONNECTOR, "scylla.user": "u", "scylla.password": reference}, WORKER, {"HOME": "/root"})
    [problem] = caught.value.problems
    assert problem.property == "scylla.password" and problem.problem.endswith(f"}}: {why}")
