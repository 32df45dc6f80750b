"""The Schema Registry client against a small registry that speaks the same HTTP interface."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import pytest

from connector.config import RegistryConfig, Secret
from connector.errors import FatalDeliveryError, RetriableDeliveryError
from connector.registry import client as client_module
from connector.registry.client import SchemaRegistry
from connector.registry.timely_http import Answer
from tests.registry.registry_server import Registry, served

INT, LONG = '"int"', '"long"'


def client(*urls: str, **more: Any) -> SchemaRegistry:
    return SchemaRegistry(RegistryConfig(urls=urls), **more)


def test_ids_are_asked_for_once() -> None:
    registry = Registry()
    with served(registry) as url, client(url) as schemas:
        assert schemas.id_for("a/b-value", INT) == 1
        assert schemas.id_for("a/b-value", INT) == 1
        assert schemas.id_for("other", INT) == 1
        assert schemas.id_for("other", LONG) == 2
        assert schemas.schema_of(2) == LONG
        assert schemas.subjects() == ["a/b-value", "other"]
    assert [path for _, path, _ in registry.requests] == [
        "/api/subjects/a%2Fb-value/versions",
        "/api/subjects/other/versions",
        "/api/subjects/other/versions",
        "/api/subjects",
    ]
    with served(registry) as url, client(url) as schemas:
        assert schemas.schema_of(2) == LONG


def test_without_registering() -> None:
    registry = Registry()
    with served(registry) as url:
        refused = pytest.raises(FatalDeliveryError, match=r"auto\.register\.schemas=false")
        with client(url, auto_register=False) as schemas, refused:
            schemas.id_for("s", INT)
        with client(url) as schemas:
            schemas.id_for("s", INT)
        with client(url, auto_register=False) as schemas:
            assert schemas.id_for("s", INT) == 1


def record(*fields: Any, **more: Any) -> str:
    named = [{"name": name, "type": type_} for name, type_ in fields]
    return json.dumps({"type": "record", "name": "After", "namespace": "shop.ks.t", "fields": named, **more})


CELL = {"type": "record", "name": "Cell", "fields": [{"name": "value", "type": ["null", "string"]}]}
CELLS = {"type": "array", "items": CELL}
OURS = record(("pk", ["null", "int"]), ("v", ["null", CELLS]), ("w", "Cell"))
LATEST = {"auto_register": False, "use_latest_version": True}


@pytest.mark.parametrize(
    "latest",
    [
        OURS,
        record(("pk", ["null", "long"]), ("v", ["null", CELLS]), ("w", CELL | {"name": "Other"}), doc="x"),
        OURS.replace("After", "Row").replace('"string"', '{"type": "string", "avro.java.string": "String"}'),
        record(
            ("pk", ["null", {"type": "int", "connect.version": 1}]), ("v", ["null", CELLS]), ("w", "shop.ks.t.Cell")
        ),
    ],
)
def test_the_latest_schema_is_named_if_it_says_the_same_bytes(latest: str) -> None:
    registry = Registry()
    with served(registry) as url:
        with client(url) as schemas:
            assert schemas.id_for("s", latest) == 1
        with client(url, **LATEST) as schemas:
            assert schemas.id_for("s", OURS) == 1


def test_what_the_latest_schema_refers_to_is_asked_for() -> None:
    registry = Registry()
    latest = record(("v", ["null", "shop.ks.t.Cell"]), ("w", "shop.ks.t.Cell"))
    cells = {"schema": json.dumps(CELL | {"namespace": "shop.ks.t"}), "id": 6}
    of_cells = {"name": "shop.ks.t.Cell", "subject": "cells", "version": 3}
    registry.answers = [(200, {"schema": latest, "id": 7, "references": [of_cells]}), (200, cells)]
    with served(registry) as url, client(url, **LATEST) as schemas:
        assert schemas.id_for("s", record(("v", ["null", CELL]), ("w", "Cell"))) == 7
    assert registry.requests[-1][1] == "/api/subjects/cells/versions/3"


@pytest.mark.parametrize(
    ("latest", "said"),
    [
        (LONG, "a record is of the type record in records, and long there"),
        (record(("pk", ["null", "int"])), "a record has no field v there"),
        (OURS.replace('"value"', '"content"'), "what the field v holds has no field value there"),
        (OURS.replace('["null", "int"]', '["int", "null"]'), "the field pk is of the type null in records, and int"),
        (OURS.replace('["null", "int"]', '"int"'), "the field pk is of the type union in records, and int there"),
        (OURS.replace('["null", "int"]', '["null", "int", "long"]'), "the field pk is one of 2 types .* of 3 there"),
        (record(("w", CELL), ("v", ["null", CELLS]), ("pk", ["null", "int"])), "in another order there: w, v, pk"),
        (record(("pk", ["null", "int"]), ("v", ["null", CELLS]), ("w", "Cell"), ("x", "int")), "no field x in records"),
        ('syntax = "proto3";', "no Avro schema"),
    ],
)
def test_a_latest_schema_that_says_other_bytes_than_are_written_is_refused(latest: str, said: str) -> None:
    registry = Registry()
    with served(registry) as url:
        with client(url) as schemas:
            schemas.id_for("s", latest)
        with client(url, **LATEST) as schemas:
            with pytest.raises(FatalDeliveryError, match=f"subject s: its latest schema .*{said}.*auto.register"):
                schemas.id_for("s", OURS)
            # Whoever registers it need not restart anything.
            with client(url) as other:
                number = other.id_for("s", OURS)
            assert schemas.id_for("s", OURS) == number


def logical(meaning: str, type_: str = "long", **more: int) -> str:
    return record(("at", ["null", {"type": type_, "logicalType": meaning, **more}]))


@pytest.mark.parametrize(
    ("ours", "latest", "said"),
    [
        (
            logical("timestamp-millis"),
            logical("timestamp-micros"),
            "the field at is a timestamp-millis .* a timestamp-mi",
        ),
        (logical("decimal", "bytes", scale=2), logical("decimal", "bytes", scale=3), "scale 2 in records, .* scale 3"),
        (logical("decimal", "bytes"), logical("decimal", "bytes", scale=0, precision=9), None),
        (logical("timestamp-millis"), record(("at", ["null", "long"])), None),
        (record(("at", ["null", "long"])), logical("timestamp-micros"), None),
    ],
)
def test_numbers_are_counted_in_what_the_latest_schema_says(ours: str, latest: str, said: str | None) -> None:
    registry = Registry()
    with served(registry) as url:
        with client(url) as schemas:
            schemas.id_for("s", latest)
        with client(url, **LATEST) as schemas:
            if said is None:
                assert schemas.id_for("s", ours) == 1
                return
            with pytest.raises(FatalDeliveryError, match=said):
                schemas.id_for("s", ours)


def test_normalising_is_asked_for() -> None:
    registry = Registry()
    with served(registry) as url, client(url, normalize=True) as schemas:
        schemas.id_for("s", INT)
    assert registry.requests[0][1].endswith("/versions?normalize=true")


def test_logins() -> None:
    registry = Registry()
    with served(registry) as url:
        for config in (RegistryConfig((url,), user_info=Secret("u:p")), RegistryConfig((url,), token=Secret("tok"))):
            with SchemaRegistry(config) as schemas:
                schemas.subjects()
    basic = base64.b64encode(b"u:p").decode()
    assert [given for _, _, given in registry.requests] == [f"Basic {basic}", "Bearer tok"]


@pytest.mark.parametrize(
    ("status", "text"),
    [(401, "basic.auth.user.info"), (403, "grant"), (409, "incompatible"), (422, "invalid"), (400, "refused")],
)
def test_refusals_say_what_to_do(status: int, text: str) -> None:
    registry = Registry()
    registry.answers = [(status, {"error_code": status, "message": "its own words"})]
    with served(registry) as url, client(url) as schemas:
        with pytest.raises(FatalDeliveryError) as caught:
            schemas.id_for("shop-value", INT)
        assert text in str(caught.value) and "its own words" in str(caught.value)
        assert "shop-value" in str(caught.value) and url in str(caught.value)
        # What was refused is asked again, not remembered.
        assert schemas.id_for("shop-value", INT) == 1


def test_a_registry_that_is_starting_is_tried_again_later() -> None:
    registry = Registry()
    registry.answers = [(503, b"starting")] * 2
    with served(registry) as url, client(url) as schemas:
        with pytest.raises(RetriableDeliveryError, match="503"):
            schemas.id_for("s", INT)
        assert schemas.id_for("s", INT) == 1


def test_every_address_gets_its_turn() -> None:
    registry = Registry()
    with served(registry) as url, client("http://127.0.0.1:1", url) as schemas:
        assert schemas.id_for("s", INT) == 1


def test_nobody_there() -> None:
    with client("http://127.0.0.1:1") as schemas, pytest.raises(RetriableDeliveryError, match="cannot be reached"):
        schemas.subjects()


def test_a_kept_connection_that_was_closed_costs_nothing() -> None:
    registry = Registry()
    with served(registry) as url, client(url) as schemas:
        schemas.subjects()
        registry.close_next = True
        assert schemas.id_for("s", INT) == 1


def test_a_closed_connection_is_no_reason_to_ask_somebody_else() -> None:
    first, second = Registry(), Registry()
    with served(first) as one, served(second) as two, client(one, two) as schemas:
        schemas.subjects()
        first.close_next = True
        schemas.subjects()
    assert len(first.requests) == 3 and not second.requests


def test_an_answer_that_trickles_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket's timeout begins anew with every byte."""
    monkeypatch.setattr(client_module, "TIMEOUT_SECONDS", 0.3)
    registry = Registry()
    registry.trickles = threading.Event()
    with served(registry) as url, client(url) as schemas:
        with pytest.raises(RetriableDeliveryError, match=r"cannot be reached: (timed out|its answer did not)"):
            schemas.subjects()
        registry.trickles.set()
    assert len(registry.requests) <= 1, "it had its time"


def test_what_was_left_of_the_time_for_one_answer_is_not_that_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "TIMEOUT_SECONDS", 50.0)
    registry = Registry()
    with served(registry) as url, client(url) as schemas:
        schemas.subjects()
        assert schemas._connection is not None and schemas._connection.sock is not None
        schemas._connection.sock.settimeout(0.0)
        assert schemas.id_for("s", INT) == 1
    assert len(registry.requests) == 2


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://me:s3cr3t@registry.example:8443/v2?token=s3cr3t#s3cr3t", "https://registry.example:8443/v2"),
        ("/elsewhere/subjects", "/elsewhere/subjects"),
        ("http://[::1", None),
    ],
)
def test_a_redirect_tells_where_to(location: str, shown: str | None) -> None:
    registry = Registry()
    registry.location, registry.answers = location, [(302, b"")]
    with served(registry) as url, client(url) as schemas, pytest.raises(FatalDeliveryError) as caught:
        schemas.subjects()
    told = str(caught.value)
    assert f"sends us on to {shown}: " in told if shown else "refused" in told
    assert "HTTP 302" in told and "s3cr3t" not in told


@pytest.mark.parametrize("answer", [b"<html>", {"schema": 1}, []])
def test_something_that_is_no_registry(answer: Any) -> None:
    registry = Registry()
    registry.answers = [(200, answer)]
    with served(registry) as url, client(url) as schemas, pytest.raises(FatalDeliveryError, match="is not a Schema"):
        schemas.id_for("s", INT)


@pytest.mark.parametrize("answer", [b"<html>", {"error_code": 404, "message": "HTTP 404 Not Found"}])
def test_a_path_that_is_none_of_a_registry_is_no_schema_that_is_missing(answer: Any) -> None:
    registry = Registry()
    registry.answers = [(404, answer)]
    wrong = pytest.raises(FatalDeliveryError, match=r"no Schema Registry answers there.*schema\.registry\.url")
    with served(registry) as url, client(url) as schemas, wrong:
        schemas.id_for("s", INT)


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b'{"id": true}', b'{"id": -1}', b'{"id": 1e400}', b"9" * 5_000],
)
@pytest.mark.parametrize("status", [200, 409])
def test_answers_that_no_registry_gives_are_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, status: int, content: bytes
) -> None:
    schemas = client("http://registry:8081")
    monkeypatch.setattr(schemas, "_exchange", lambda *_: Answer(status, content))
    with pytest.raises(FatalDeliveryError, match="Schema Registry http://registry:8081"):
        schemas.id_for("s", INT)


def test_an_id_that_no_record_can_name_is_refused() -> None:
    registry = Registry()
    registry.answers.append((200, {"id": 2**31}))
    with (
        served(registry) as url,
        client(url) as schemas,
        pytest.raises(FatalDeliveryError, match="the id of subject s"),
    ):
        schemas.id_for("s", INT)


def test_a_login_that_no_request_can_carry_is_refused() -> None:
    schemas = SchemaRegistry(RegistryConfig(urls=("http://127.0.0.1:1",), token=Secret("a\nb")))
    with pytest.raises(FatalDeliveryError, match="cannot be asked"):
        schemas.subjects()
