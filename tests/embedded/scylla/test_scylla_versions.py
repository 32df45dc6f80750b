"""The double as one of several versions of ScyllaDB: what SUPPORTED says, and upgrades of single nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from connector.errors import EmbeddedError
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.protocol import frame
from embedded.scylla.versions import EXTENSIONS, NEWEST, VERSIONS, version_like
from tests.embedded.scylla.raw_client import RawClient
from tests.embedded.scylla.test_scylla_handshake import multimap

Connect = Callable[..., RawClient]


def test_lines_and_releases_name_a_version() -> None:
    assert NEWEST == "2026.1"
    assert version_like("2025.4.3") == VERSIONS["2025.4"]
    assert version_like(NEWEST).offered == set(EXTENSIONS)
    assert not version_like("2025.2").offers("SCYLLA_USE_METADATA_ID")
    assert version_like("2025.3").offers("SCYLLA_USE_METADATA_ID")
    with pytest.raises(EmbeddedError, match=r"1\.0.*2025\.1"):
        version_like("1.0")
    with pytest.raises(EmbeddedError, match=r"SCYLLA_SHARD;.*TABLETS_ROUTING_V1"):
        version_like(NEWEST, ["SCYLLA_SHARD"])


def test_older_versions_offer_less(connect: Connect) -> None:
    with EmbeddedScylla(like="2025.1", without=["TABLETS_ROUTING_V1", "SCYLLA_RATE_LIMIT_ERROR"]) as server:
        client = connect(server)
        supported = multimap(client.ask(frame.OPTIONS))
        assert supported["SCYLLA_LWT_ADD_METADATA_MARK"] == ["LWT_OPTIMIZATION_META_BIT_MASK=2147483648"]
        left_out = {"SCYLLA_USE_METADATA_ID", "CLIENT_OPTIONS", "TABLETS_ROUTING_V1", "SCYLLA_RATE_LIMIT_ERROR"}
        assert not left_out & set(supported)
        assert client.rows("SELECT version FROM system.versions").rows == [[b"2025.1.0"]]


def test_a_node_is_upgraded(connect: Connect) -> None:
    with EmbeddedScylla(like="2025.1", nodes=2) as server:
        with pytest.raises(EmbeddedError, match="stop it"):
            server.admin.start_node(1, like="2026.1")
        server.admin.stop_node(1)
        server.admin.start_node(1, like="2026.1", without=["TABLETS_ROUTING_V1"])
        old, new = server.admin.nodes()
        assert (old["version"], new["version"]) == ("2025.1.0", "2026.1.0")
        assert "CLIENT_OPTIONS" in multimap(connect(server, host=new["address"]).ask(frame.OPTIONS))
        assert "TABLETS_ROUTING_V1" not in new["offers"]
        assert "CLIENT_OPTIONS" not in multimap(connect(server, host=old["address"]).ask(frame.OPTIONS))
