"""Key stores made by Java's keytool, and what is said of those that cannot be used."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connector.config.secret import Secret
from connector.config.tls import pem_file
from connector.config.tls.contexts import configured_context, tls_context
from connector.config.tls.keystores import (
    KeystoreError,
    openssl_cipher_name,
    read_certificates,
    read_identity,
    read_pem_identity,
)
from tests.config.files import STORES, loaded, problems

TRUST, CLIENT = str(STORES / "trust.jks"), str(STORES / "client.jks")
TRUST12, CLIENT12 = str(STORES / "trust.p12"), str(STORES / "client.p12")
CHAIN, KEY, PEM = (str(STORES / name) for name in ("client-chain.pem", "client-key.pem", "trusted.pem"))


@pytest.mark.parametrize(("path", "count"), [(TRUST, 2), (TRUST12, 1), (PEM, 1)])
def test_trust_stores(path: str, count: int) -> None:
    text = read_certificates(path, Secret("trustpass") if path != PEM else None)
    assert text.count("-----BEGIN CERTIFICATE-----") == count
    tls_context(text, None, check_host=True)


def test_a_jks_trust_store_needs_no_password() -> None:
    assert read_certificates(TRUST) == read_certificates(TRUST, "trustpass")


def test_all_forms_hold_the_same_certificate() -> None:
    assert read_certificates(TRUST12, "trustpass") in read_certificates(TRUST)
    assert read_certificates(PEM).split()[1:-1] == read_certificates(TRUST12, "trustpass").split()[1:-1]


def test_identities() -> None:
    identity = read_identity(CLIENT, "storepass", "keypass")
    assert "PRIVATE KEY" in identity.key and "PRIVATE" not in repr(identity)
    assert read_pem_identity(CHAIN, KEY, "keypass").key == read_identity(CLIENT12, "storepass").key
    for found in (identity, read_identity(CLIENT12, "storepass")):
        tls_context(None, found, check_host=False)


def test_identities_need_no_place_for_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A container with a read-only root has none, unless somebody mounts one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    tls_context(None, read_identity(CLIENT12, "storepass"), check_host=True)


def test_where_memory_has_no_files_a_key_stands_on_the_disk_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pem_file, "_in_memory", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tls_context(None, read_identity(CLIENT12, "storepass"), check_host=True)
    with pem_file.PemFile("a key") as file:
        (path,) = tmp_path.iterdir()
        assert (file.path, path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (str(path), "a key", 0o600)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("read", "arguments", "about"),
    [
        (read_identity, (CLIENT, "wrong", "keypass"), "password"),
        (read_identity, (CLIENT, "storepass", "wrong"), "password"),
        (read_identity, (CLIENT, None, None), "password"),
        (read_identity, (CLIENT12, "wrong"), "password"),
        (read_identity, (CLIENT12, None), "password"),
        (read_identity, (TRUST, "trustpass"), "location"),
        (read_identity, (TRUST12, "trustpass"), "location"),
        (read_identity, (PEM,), "location"),
        (read_certificates, (TRUST, "wrong"), "password"),
        (read_certificates, (TRUST12, "wrong"), "password"),
        (read_certificates, (KEY,), "location"),
        (read_certificates, (__file__,), "location"),
        (read_certificates, (str(STORES / "none.jks"),), "location"),
        (read_pem_identity, (CHAIN, KEY), "password"),
        (read_pem_identity, (CHAIN, KEY, "wrong"), "password"),
        (read_pem_identity, (KEY, KEY, "keypass"), "location"),
    ],
)
def test_stores_that_cannot_be_used(read: Callable[..., Any], arguments: tuple[Any, ...], about: str) -> None:
    with pytest.raises(KeystoreError) as caught:
        read(*arguments)
    assert caught.value.about == about
    assert "wrong" not in str(caught.value).replace("is wrong", "")


def test_every_truncation_of_a_jks_is_an_error(tmp_path: Any) -> None:
    content = (STORES / "trust.jks").read_bytes()
    for length in range(4, len(content) - 20, 37):
        path = tmp_path / "cut.jks"
        path.write_bytes(content[:length])
        with pytest.raises(KeystoreError):
            read_certificates(str(path))


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
        ("AES128-SHA", "AES128-SHA"),
    ],
)
def test_cipher_names(java: str, openssl: str) -> None:
    assert openssl_cipher_name(java) == openssl


def test_tls_to_scylla() -> None:
    given = {
        "scylla.ssl.enabled": "true",
        "scylla.ssl.truststore.path": TRUST,
        "scylla.ssl.truststore.password": "trustpass",
        "scylla.ssl.keystore.path": CLIENT12,
        "scylla.ssl.keystore.password": "storepass",
        "scylla.ssl.cipherSuites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    }
    context = configured_context(loaded(given).connector.connection.tls)
    assert context is not None and not context.check_hostname
    wrong = {
        **given,
        "scylla.ssl.truststore.password": "no",
        "scylla.ssl.keystore.path": "/none",
        "scylla.ssl.openssl.privateKey": KEY,
    }
    assert {one.property for one in problems(wrong)} == {
        "scylla.ssl.truststore.password",
        "scylla.ssl.keystore.path",
        "scylla.ssl.openssl.keyCertChain",
    }
    assert configured_context(loaded().connector.connection.tls) is None
