"""What a ScyllaDB can do, found out by trying it in a keyspace of the run's own; and what the cluster looks like.

In: a session. Out: `Abilities` (name → why not, in the server's words) and a `Shape`.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from cassandra import DriverException
from cassandra.cluster import Cluster, NoHostAvailable, Session
from cassandra.protocol import ErrorMessage

REPLICATION = "replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
ABILITIES = {
    "vnodes": "keyspaces without tablets, with change logs",
    "tablets": "keyspaces of tablets, with change logs",
    "lwt on tablets": "conditional writes on tables of tablets",
    "vector": "the vector type",
    "split": "ALTER TABLE … WITH tablets = {'min_tablet_count': n}",
    "generation": "a new vnode generation on request (needs the address of the REST API: API=http://node:10000)",
}


@dataclass(frozen=True)
class Node:
    address: str
    dc: str
    rack: str
    tokens: int
    shards: int


@dataclass(frozen=True)
class Shape:
    """The cluster as a result page tells it."""

    version: str
    nodes: tuple[Node, ...]

    def text(self) -> str:
        """
        >>> Shape("2026.1.0", (Node("10.0.0.1", "dc1", "r1", 256, 2), Node("10.0.0.2", "dc1", "r1", 256, 2))).text()
        '2 nodes in dc1 (shards per node: 2; tokens per node: 256)'
        """
        several = "s" if len(self.nodes) > 1 else ""
        places = ", ".join(sorted({node.dc for node in self.nodes}))
        shards = "/".join(str(each) for each in sorted({node.shards for node in self.nodes}))
        tokens = "/".join(str(each) for each in sorted({node.tokens for node in self.nodes}))
        return f"{len(self.nodes)} node{several} in {places} (shards per node: {shards}; tokens per node: {tokens})"


@dataclass
class Abilities:
    """Why something cannot be done here; what is not in it can."""

    missing: dict[str, str] = field(default_factory=dict)
    # Whether CREATE KEYSPACE knows the option `tablets`.
    tablets_option: bool = True

    def why_not(self, ability: str) -> str | None:
        assert ability in ABILITIES, f"{ability!r} is not one of {', '.join(ABILITIES)}"
        return self.missing.get(ability)


def shape_of(cluster: Cluster, session: Session) -> Shape:
    columns = "data_center, rack, tokens"
    own = session.execute(f"SELECT rpc_address, broadcast_address, {columns} FROM system.local").one()
    others = list(session.execute(f"SELECT rpc_address, {columns} FROM system.peers"))
    shards = {str(host.address): _shards(host) for host in cluster.metadata.all_hosts()}
    address = str(own.rpc_address or own.broadcast_address)
    rows = [(address, own), *((str(row.rpc_address), row) for row in others)]
    nodes = [
        Node(at, row.data_center or "?", row.rack or "?", len(row.tokens or ()), shards.get(at, 0) or _any(shards))
        for at, row in rows
    ]
    return Shape(version_of(session), tuple(sorted(nodes, key=lambda node: node.address)))


def _shards(host: Any) -> int:
    return int(host.sharding_info.shards_count) if host.sharding_info is not None else 0


def _any(shards: dict[str, int]) -> int:
    return max(shards.values(), default=0)


def version_of(session: Session) -> str:
    """ScyllaDB's own version; `release_version` only tells which Cassandra it looks like."""
    try:
        row = session.execute("SELECT version FROM system.versions WHERE key = 'local'").one()
    except (DriverException, ErrorMessage):
        row = None
    if row is not None and row.version:
        return str(row.version)
    return str(session.execute("SELECT release_version FROM system.local").one().release_version)


def abilities_of(session: Session, prefix: str, api: str | None) -> Abilities:
    """Try everything, in keyspaces that begin with the prefix; they are gone afterwards."""
    found = Abilities()
    for kind in ("tablets", "vnodes"):
        keyspace = f"{prefix}try_{kind}"
        option = f" AND tablets = {{'enabled': {str(kind == 'tablets').lower()}}}"
        why = _refused(session, f"CREATE KEYSPACE {keyspace} WITH {REPLICATION}{option}")
        if why is not None and "nknown property" in why:
            # Versions from before tablets do not know the option, and have vnodes only.
            found.tablets_option = False
            why = why if kind == "tablets" else _refused(session, f"CREATE KEYSPACE {keyspace} WITH {REPLICATION}")
        why = why or _refused(
            session, f"CREATE TABLE {keyspace}.t (pk int PRIMARY KEY, v int) WITH cdc = {{'enabled': true}}"
        )
        if why is not None:
            found.missing[kind] = why
        else:
            _try_more(session, kind, keyspace, found)
        session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
    for ability in ("lwt on tablets", "split"):
        if "tablets" in found.missing:
            found.missing.setdefault(ability, found.missing["tablets"])
    if (why := api_refused(api)) is not None:
        found.missing["generation"] = why
    elif "vnodes" in found.missing:
        found.missing["generation"] = found.missing["vnodes"]
    return found


def _try_more(session: Session, kind: str, keyspace: str, found: Abilities) -> None:
    why = _refused(session, f"CREATE TABLE {keyspace}.vectors (pk int PRIMARY KEY, v vector<float, 2>)")
    if why is not None:
        found.missing["vector"] = why
    if kind == "tablets":
        why = _refused(session, f"INSERT INTO {keyspace}.t (pk, v) VALUES (1, 1) IF NOT EXISTS")
        if why is not None:
            found.missing["lwt on tablets"] = why
        why = _refused(session, f"ALTER TABLE {keyspace}.t WITH tablets = {{'min_tablet_count': 1}}")
        if why is not None:
            found.missing["split"] = why


def _refused(session: Session, statement: str) -> str | None:
    """The server's words if it does not take the statement."""
    try:
        session.execute(statement)
    except NoHostAvailable as error:
        return "; ".join(sorted({str(each) for each in error.errors.values()}))
    except (DriverException, ErrorMessage) as error:
        return str(error)
    return None


def api_refused(api: str | None) -> str | None:
    """Why new generations cannot be asked for."""
    if api is None:
        return "no address of the REST API was given (API=http://node:10000, --api)"
    try:
        with urllib.request.urlopen(f"{api}/storage_service/", timeout=10):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None  # It is there, and that is all that can be asked without changing anything.
    except OSError as error:
        return f"the REST API at {api} does not answer: {error}"
