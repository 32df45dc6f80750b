"""The HTTP port's properties: a token, and TLS by the names of Kafka Connect's listeners."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.config.files import STORES, loaded, problem

TLS = "listeners.https.ssl."
STORE = {f"{TLS}keystore.location": str(STORES / "client.p12"), f"{TLS}keystore.password": "storepass"}
TRUST = {f"{TLS}truststore.location": str(STORES / "trust.p12"), f"{TLS}truststore.password": "trustpass"}


def test_without_a_store_the_port_is_plain() -> None:
    http = loaded().worker.http
    assert http.token is None and not http.encrypted and http.tls() is None


@pytest.mark.parametrize(
    "store",
    [
        STORE,
        {
            f"{TLS}keystore.location": str(STORES / "client.jks"),
            f"{TLS}keystore.password": "storepass",
            f"{TLS}key.password": "keypass",
            f"{TLS}keystore.type": "JKS",
        },
        {
            f"{TLS}keystore.certificate.chain": (STORES / "client-chain.pem").read_text(),
            f"{TLS}keystore.key": (STORES / "client-key.pem").read_text(),
            f"{TLS}key.password": "keypass",
        },
    ],
)
def test_stores_of_every_kind_are_served(store: dict[str, str]) -> None:
    context = loaded(worker=store).worker.http.tls()
    assert context is not None and context.verify_mode is ssl.CERT_NONE
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("auth", "mode"), [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("REQUIRED", ssl.CERT_REQUIRED)]
)
def test_certificates_of_clients_are_asked_for(auth: str, mode: ssl.VerifyMode) -> None:
    context = loaded(worker={**STORE, **TRUST, f"{TLS}client.auth": auth}).worker.http.tls()
    assert context is not None and context.verify_mode is mode


@pytest.mark.parametrize(
    ("worker", "name"),
    [
        ({**STORE, f"{TLS}keystore.password": "wrong"}, f"{TLS}keystore.password"),
        ({**STORE, f"{TLS}keystore.location": "/no/such.p12"}, f"{TLS}keystore.location"),
        ({**STORE, **TRUST, f"{TLS}truststore.password": "wrong"}, f"{TLS}truststore.password"),
        ({**STORE, f"{TLS}truststore.location": "/no/such.p12"}, f"{TLS}truststore.location"),
        ({**STORE, f"{TLS}truststore.certificates": "no PEM"}, f"{TLS}truststore.certificates"),
        ({**STORE, f"{TLS}client.auth": "required"}, f"{TLS}client.auth"),
        ({**STORE, f"{TLS}client.auth": "perhaps"}, f"{TLS}client.auth"),
        ({**STORE, f"{TLS}cipher.suites": "NO_SUCH_CIPHER"}, f"{TLS}cipher.suites"),
        ({f"{TLS}keystore.key": "x"}, f"{TLS}keystore.certificate.chain"),
        ({f"{TLS}keystore.certificate.chain": "x"}, f"{TLS}keystore.key"),
        ({f"{TLS}keystore.certificate.chain": "x", f"{TLS}keystore.key": "y"}, f"{TLS}keystore.certificate.chain"),
        (
            {**STORE, f"{TLS}keystore.certificate.chain": "x", f"{TLS}keystore.key": "y"},
            f"{TLS}keystore.certificate.chain",
        ),
        # What would leave the port open because of a slip.
        ({f"{TLS}keystore.locatoin": "server.p12"}, f"{TLS}keystore.locatoin"),
        ({"rest.bearer.tokn": "an-operators-token"}, "rest.bearer.tokn"),
        ({"rest.bearer.token": "two\nlines"}, "rest.bearer.token"),
    ],
)
def test_what_is_wrong_is_told_by_its_property(worker: dict[str, str], name: str) -> None:
    found = problem(worker=worker)
    assert found.property == name
    assert "an-operators-token" not in str(found) and "lines" not in str(found)


def test_a_token_comes_from_a_file_a_variable_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("an-operators-token\n")
    for worker, environ in (
        ({"rest.bearer.token": "an-operators-token"}, {}),
        ({"rest.bearer.token": f"${{directory:{tmp_path}:token}}"}, {}),
        ({"rest.bearer.token": "${env:TOKEN}"}, {"TOKEN": "an-operators-token"}),
        ({}, {"CONNECT_REST_BEARER_TOKEN": "an-operators-token"}),
    ):
        configuration = loaded(worker=worker, environ=environ)
        token = configuration.worker.http.token
        assert token is not None and token.reveal().strip() == "an-operators-token"
        assert "an-operators-token" not in repr(configuration)


def test_settings_of_one_port_do_not_tell_workers_apart() -> None:
    assert loaded().fingerprint() == loaded(worker={**STORE, "rest.bearer.token": "an-operators-token"}).fingerprint()


def test_tls_settings_without_a_store_are_told() -> None:
    [notice] = [each for each in loaded(worker={f"{TLS}client.auth": "required"}).notices if TLS in each]
    assert "not encrypted" in notice
