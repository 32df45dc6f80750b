"""The embedded server as the ScyllaDB under test: it can everything, and what it cannot is a failure."""

from __future__ import annotations

from embedded.scylla.process import EmbeddedScylla
from tests.servers.scylla import Scylla, local_now_us


class Double(EmbeddedScylla, Scylla):
    """`with Double(ring_delay=0) as scylla:`; the admin interface is there for tests marked `only_double`."""

    @property
    def points(self) -> tuple[tuple[str, int], ...]:
        return ((self.host, self.port),)

    def require(self, ability: str) -> None:
        """Nothing is left out here."""

    def able(self, ability: str) -> bool:
        return True

    def now_us(self) -> int:
        return local_now_us()

    def keyspace_ddl(self, name: str, *, tablets: bool | None = None, initial: int | None = None) -> str:
        kind = ""
        if tablets is not None:
            count = f", 'initial': {initial}" if initial else ""
            kind = f" AND tablets = {{'enabled': {str(tablets).lower()}{count}}}"
        return (
            f"CREATE KEYSPACE {name} WITH replication = "
            f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}}{kind}"
        )

    def execute(self, statement: str) -> None:
        self.admin.cql(statement)

    def new_generation(self) -> int:
        return self.admin.new_generation()
