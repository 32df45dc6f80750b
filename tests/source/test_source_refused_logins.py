"""A login that is refused while a process runs: it says so, and goes on once the login is taken again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.config import load
from connector.errors import CdcError
from connector.source.connection import Connection
from connector.source.from_config import connection_settings
from embedded.ports import free_port
from embedded.scylla.process import EmbeddedScylla
from tests.config.files import CONNECTOR, WORKER
from tests.embedded.scylla.certificates import certificate
from tests.servers.patience import until

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("servers that begin again with another login")]


def connected(address: str, **options: str) -> Connection:
    loaded = load({**CONNECTOR, "scylla.cluster.ip.addresses": address, **options}, WORKER, {})
    connection = Connection(connection_settings(loaded.connector.connection))
    connection.open()
    return connection


def answer(connection: Connection) -> str:
    """Nothing where there is one."""
    try:
        connection.require_an_answer()
    except CdcError as error:
        return str(error)
    return ""


def looked_at(connection: Connection, server: Callable[..., EmbeddedScylla], refuses: dict[str, Any]) -> str:
    """What is said while a server that refuses has taken the place of one that did not; behind it, that one again."""
    with server(**refuses):
        said = until(
            lambda: connection.refusal and answer(connection), step=lambda: answer(connection), what="a refusal"
        )
    with server():
        until(lambda: not answer(connection), what="an answer")
    assert connection.refusal is None
    return said


@pytest.fixture
def port() -> Iterator[int]:
    yield free_port()


def test_a_password_that_is_refused_for_a_while(port: int) -> None:
    def server(password: str = "the old word") -> EmbeddedScylla:
        return EmbeddedScylla(port=port, user="cdc", password=password)

    with server() as scylla:
        connection = connected(scylla.address, **{"scylla.user": "cdc", "scylla.password": "the old word"})
        assert not answer(connection) and connection.refusal is None
    try:
        said = looked_at(connection, server, {"password": "the new word"})
    finally:
        connection.close()
    assert said.startswith(f"127.0.0.1:{port}: login refused: ")
    assert "Username and/or password are incorrect" in said


def test_a_certificate_that_is_refused_for_a_while(tmp_path: Path, port: int) -> None:
    """As one that has expired."""
    (theirs, key), (mine, my_key), (other, _) = (certificate(tmp_path, name) for name in ("server", "client", "other"))

    def server(trusted: Path = mine) -> EmbeddedScylla:
        return EmbeddedScylla(port=port, tls_cert=theirs, tls_key=key, tls_client_ca=trusted)

    with server() as scylla:
        stores = {"scylla.ssl.openssl.keyCertChain": str(mine), "scylla.ssl.openssl.privateKey": str(my_key)}
        stores |= {"scylla.ssl.enabled": "true", "scylla.ssl.truststore.path": str(theirs)}
        connection = connected(scylla.address, **stores)
        assert not answer(connection)
    try:
        said = looked_at(connection, server, {"trusted": other})
    finally:
        connection.close()
    assert said.startswith(f"127.0.0.1:{port}: ") and "it may not take the certificate of scylla.ssl.*" in said
