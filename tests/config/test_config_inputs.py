"""What stands in files and values is a configuration or a problem that names its property; nothing is a traceback."""

from __future__ import annotations

import base64
import errno
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from connector.config import environment_login, load
from connector.config.document import read_document
from connector.config.properties.address import parse_brokers
from connector.config.properties.kind import Invalid
from connector.config.secret import learn
from connector.config.tls.keystores import KeystoreError, read_certificates, read_identity, read_pem_identity
from connector.errors import ConfigurationError
from connector.secrets import scrub
from tests.config.files import CONNECTOR, STORES, WORKER, problem, problems, validate


@pytest.mark.parametrize(
    "text", ["", " ", ",", ":::", "a b", "h:99999", "h:0", "h:²", ":9092", "[::1", "h:" + "9" * 5000, "h:80x"]
)
def test_brokers_that_are_none(text: str) -> None:
    found = problem(worker={"bootstrap.servers": text})
    assert found.property == "bootstrap.servers"


def test_brokers() -> None:
    assert (
        parse_brokers("a, b_1.x:1,[::1]:2,[fe80::1], SASL_SSL://c:3,a")
        == "a:9092,b_1.x:1,[::1]:2,[fe80::1]:9092,SASL_SSL://c:3"
    )
    with pytest.raises(Invalid):
        parse_brokers("[zz]:1")


AVRO = {"value.converter": "AvroConverter"}
URL = "value.converter.schema.registry.url"


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://reg:8o81", " , ", "reg:8081", "http://", "http://h:99999", "${env:UNSET}"]
)
def test_registry_addresses(url: str) -> None:
    assert URL in {one.property for one in problems({**AVRO, URL: url})}


@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 5000, "²", "٣", "1_0"])
@pytest.mark.parametrize("name", ["tasks.max", "scylla.query.time.window.size"])
def test_numbers(name: str, number: str) -> None:
    assert problem({name: number}).property == name
    assert problem(worker={"max.in.flight.requests.per.connection": number}).property


def test_numbers_of_any_length_in_files(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(CONNECTOR)[:-1] + ', "tasks.max": ' + "9" * 5000 + "}")
    assert [one.property for one in validate(path, WORKER, {})] == ["tasks.max"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("name", ["c.json", "c.properties", "c.yaml", "c"])
def test_what_windows_writes_is_read(tmp_path: Path, name: str, encoding: str) -> None:
    text = "name=orders\r\ntopic.prefix=shöp\r\n"
    if name == "c.yaml":
        text = text.replace("=", ": ")
    elif name != "c.properties":
        text = json.dumps({"name": "orders", "topic.prefix": "shöp"}, ensure_ascii=False)
    begin = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / name).write_bytes((begin + text).encode(encoding))
    assert read_document(tmp_path / name, "connector").texts == {"name": "orders", "topic.prefix": "shöp"}


def test_half_a_character_of_utf_16_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes("{}".encode("utf-16") + b" ")
    (found,) = validate(tmp_path / "c.json", WORKER, {})
    assert found.problem == "Is not UTF-16 text: byte 6 cannot be read"


def test_zeros_in_front_of_a_number_mean_nothing() -> None:
    assert not problems({"tasks.max": "0" * 5000 + "1"})


@pytest.mark.parametrize("reference", ["${file:/a\0b:x}", "${directory:/a\0b:x}", "${file:/dev/zero:x}", "${file:/:x}"])
def test_references_to_what_is_no_file(reference: str) -> None:
    assert problem({"topic.prefix": reference}).property == "topic.prefix"


@pytest.mark.parametrize("acts", [("open",), ("stat", "open")])
def test_who_may_not_read_what_is_mounted_is_told_who_he_is(
    acts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root, who may read everything, runs this in a container and nothing else: the system's refusal is played, of the
    file and of the folder that it is in."""

    def refused(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    file = tmp_path / "file.json"
    file.touch()
    for act in acts:
        monkeypatch.setattr(Path, act, refused)
    who = f"Permission denied: this process runs as user {os.geteuid()}, group {os.getegid()}"
    (told,) = validate(file, None, {})
    assert told.problem == who
    assert who in problem({"topic.prefix": f"${{file:{file}:x}}"}).problem
    with pytest.raises(KeystoreError, match=who):
        read_certificates(str(file))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.yaml", "a: b: c\n", "Is not YAML: mapping values are not allowed here at line 1"),
        ("c.json", "---\nname: x\n", "looks like YAML"),
        ("c.json", "# mine\nname: x\n", "looks like YAML"),
        ("c.properties", "name = \\u00zz\n", "Is not a .properties file that Java reads"),
        ("c.json", "connector.class=x\n", "looks like a .properties file"),
        ("c.json", '{"name": "\\ud800"}', "half of a"),
        ("c.json", "{'name': 'x'}", "line 1, column 2"),
    ],
)
def test_files_that_are_no_json(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=said):
        load(path, WORKER, {})


def test_a_landing_file_is_told_from_a_connectors() -> None:
    landing = {"name": "l", "bootstrap.servers": "k", "topic.prefix": "p", "tables": "ks.t", "warehouse": "w"}
    with pytest.raises(ConfigurationError, match="This is a landing file"):
        load(landing, WORKER, {})


@pytest.mark.parametrize(
    "name", sorted(path.name for path in STORES.iterdir() if path.suffix in (".jks", ".p12", ".pem"))
)
def test_every_damaged_byte_of_a_store(tmp_path: Path, name: str) -> None:
    content = (STORES / name).read_bytes()
    step = max(1, len(content) // 60)
    path = tmp_path / "damaged"
    for at in range(0, len(content), step):
        for byte in (0, 0xFF, content[at] ^ 1):
            path.write_bytes(content[:at] + bytes((byte,)) + content[at + 1 :])
            for read in (read_certificates, read_identity):
                try:
                    read(str(path))
                except KeystoreError as error:
                    assert str(error)


@pytest.mark.parametrize("body", ["", "AAAA", "MIIB", "!!!!", "MAoCAQAwBQYDK2Vw"])
def test_damaged_pem(tmp_path: Path, body: str) -> None:
    path = tmp_path / "damaged.pem"
    whole = "".join(
        f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n" for kind in ("CERTIFICATE", "PRIVATE KEY")
    )
    path.write_text(whole)
    with pytest.raises(KeystoreError):
        read_pem_identity(str(path), str(path))


def test_a_key_on_an_unknown_curve(tmp_path: Path) -> None:
    # The last number of the curve's identifier, 1.2.840.10045.3.1.7, made another.
    der = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    other = base64.b64encode(der.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d03017f"))).decode()
    path = tmp_path / "key.pem"
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{other}\n-----END PRIVATE KEY-----\n")
    with pytest.raises(KeystoreError, match="private key that cannot be read"):
        read_pem_identity(str(STORES / "client-chain.pem"), str(path))


@pytest.mark.parametrize("path", ["a\0b", "/dev/zero", "/"])
def test_paths_of_stores_that_are_no_files(path: str) -> None:
    given: dict[str, Any] = {"scylla.ssl.enabled": "true", "scylla.ssl.truststore.path": path}
    assert problem(given).property == "scylla.ssl.truststore.path"


@pytest.mark.parametrize("word", ["9", "a.", "-"])
def test_a_long_word_costs_no_time(word: str) -> None:
    """Names of options were looked for from each of its letters."""
    before = time.process_time()
    assert not problems({"what.is.this": word * 20_000, "sasl.jaas.config": f"a.B required x={word * 20_000};"})
    assert time.process_time() - before < 1.0


def test_options_behind_a_long_word_are_still_secret() -> None:
    learn("what.is.this", f"{'9' * 2_000}.token=canary-one --pass='canary-two'")
    learn("sasl.jaas.config", "Module required a=b;cc.password = 'canary-three'")
    learn("sasl.jaas.config", r"Module required username=\"u\" password=\"canary four\";")
    text = "canary-one canary-two canary-three canary four"
    assert "canary" not in scrub(text)


@pytest.mark.parametrize("name", ["what.is.this", "scylla.password", "sasl.jaas.config"])
def test_halves_of_characters_are_no_reason_for_a_traceback(name: str) -> None:
    """JSON can hold them; whether they are taken or refused, they are known as secrets."""
    problems({name: 'x="token=canary\ud800four"; http://user:canary\ud800five@host token=canary\ud800six'})
    assert "canary\ud800six" not in scrub("canary\ud800six")


def test_avro_allows_fewer_names_of_the_key_in_the_payload() -> None:
    placed = {"cdc.output.format": "advanced", "cdc.include.primary-key.placement": "kafka-key,payload-key"}
    name = "cdc.include.primary-key.payload-key-name"
    avro = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://registry:8081",
    }
    assert not problems({**placed, name: "pk-x"})
    assert not problems({**placed, **avro, name: "pk_x"})
    assert problem({**placed, **avro, name: "pk-x"}).property == name
    assert problem({**placed, name: "\x01"}).property == name


@pytest.mark.parametrize("name", ["topic.prefix", "scylla.ssl.truststore.password", "producer.override.client.id"])
def test_variables_whose_bytes_are_no_text(name: str) -> None:
    """Python hands such bytes on as halves of characters; they were found where something was made of the text."""
    found = problem({name: "${env:BYTES}"}, environ={"BYTES": os.fsdecode(b"a\xff")})
    assert (found.property, found.value) == (name, "${env:BYTES}")
    assert "bytes that are not UTF-8" in found.problem


def test_a_login_whose_bytes_are_no_text() -> None:
    assert environment_login({"SCYLLA_USER": "u"}) is None
    assert environment_login({"SCYLLA_PASSWORD": "pässword"}) == ("cassandra", "pässword")
    with pytest.raises(ConfigurationError, match="SCYLLA_PASSWORD: Is no text"):
        environment_login({"SCYLLA_PASSWORD": os.fsdecode(b"p\xff")})
