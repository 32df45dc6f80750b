"""Tables with rows from before their log, and somebody who changes them all the time.

In: a session. Out: a table, a thread that changes it, how far a connector's snapshot of it is.
"""

from __future__ import annotations

import random

from cassandra.cluster import Session

from connector.errors import RetriableDeliveryError
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, found, logged
from tests.worker.repeated import Repeated

SNAPSHOT = {"snapshot.mode": "initial", "cdc.include.collections": "delta"}


ALL_DELETES = {**SNAPSHOT, "cdc.range.deletes": "topic"}


def old_table(
    scylla: Scylla, session: Session, keyspace: str, tablets: bool, partitions: int, lists: bool = False
) -> str:
    """A table with rows from before its log: with values, with keys alone, with static values alone."""
    table = f"{keyspace}.t"
    session.execute(scylla.keyspace_ddl(keyspace, tablets=tablets))
    session.execute(
        f"CREATE TABLE {table} (pk int, ck int, s text static, v text, n int, m map<text, int>,"
        f"{' l list<int>, e set<int>,' if lists else ''} PRIMARY KEY (pk, ck))"
    )
    for pk in range(partitions):
        if pk % 3 == 0:
            session.execute(f"INSERT INTO {table} (pk, s) VALUES ({pk}, 's{pk}')")
        if pk % 7 == 0:
            continue
        for ck in range(3):
            session.execute(f"INSERT INTO {table} (pk, ck, v, m) VALUES ({pk}, {ck}, 'v{pk}', {{'a': {pk}, 'b': 1}})")
        session.execute(f"INSERT INTO {table} (pk, ck) VALUES ({pk}, 3)")
        if lists:
            session.execute(f"UPDATE {table} SET l = [{pk}, 1], e = {{1, 2}} WHERE pk = {pk} AND ck = 1")
    session.execute(f"ALTER TABLE {table} WITH cdc = {{'enabled': true}}")
    return table


class Changes(Repeated):
    """Changes everything about a few partitions, a few of them all the time."""

    def __init__(
        self, session: Session, table: str, partitions: int, seed: int, nulls: bool = True, lists: bool = False
    ) -> None:
        super().__init__(0.003)
        self._session, self._table, self._partitions, self._nulls = session, table, partitions, nulls
        self._random, self._lists = random.Random(seed), lists

    def once(self) -> None:
        self._session.execute(self._statement())

    def _statement(self) -> str:
        draw, table, number = self._random, self._table, self._random.randrange(1000)
        hot = draw.random() < 0.5
        where = f"pk = {draw.randrange(4) if hot else draw.randrange(self._partitions)}"
        row = f"{where} AND ck = {draw.randrange(4)}"
        return draw.choice([
            f"UPDATE {table} SET v = 'w{number}' WHERE {row}",
            f"UPDATE {table} SET n = {number} WHERE {row}",
            *([f"UPDATE {table} SET v = null WHERE {row}"] if self._nulls else []),
            f"UPDATE {table} SET m['c'] = {number} WHERE {row}",
            f"UPDATE {table} SET m = m - {{'a'}} WHERE {row}",
            f"UPDATE {table} SET m = {{'d': {number}}} WHERE {row}",
            f"UPDATE {table} SET s = 't{number}' WHERE {where}",
            f"DELETE FROM {table} WHERE {row}",
            *([f"DELETE n FROM {table} WHERE {row}"] if self._nulls else []),
            *(self._about_lists(number, where, row) if self._lists else []),
            f"INSERT INTO {table} (pk, ck, v, n) VALUES ({row[5:].replace(' AND ck = ', ', ')}, 'x', {number})",
        ])  # fmt: skip

    def _about_lists(self, number: int, where: str, row: str) -> list[str]:
        """A list's elements get other keys in the snapshot than they had, so none of them is named later."""
        table, low = self._table, self._random.randrange(3)
        return [
            f"UPDATE {table} SET l = l + [{number}] WHERE {row}",
            f"UPDATE {table} SET l = [{number}] + l WHERE {row}",
            f"UPDATE {table} SET l = [{number}, 3] WHERE {row}",
            f"UPDATE {table} SET e = e + {{{number}}} WHERE {row}",
            f"UPDATE {table} SET e = e - {{1}} WHERE {row}",
            f"DELETE FROM {table} WHERE {where} AND ck > {low} AND ck <= {low + 1}",
            *([f"DELETE FROM {table} WHERE {where}"] if number < 300 else []),
        ]


def snapshot_ended(connector: Service) -> bool:
    try:
        tables = connector.report()["tables"].values()
    except RetriableDeliveryError:
        # A topic that was just created may have no leader yet.
        return False
    shots = [table["snapshot"] for table in tables]
    return len(shots) == len(connector.tables) and all(shot is not None and shot["ended"] for shot in shots)


def all_delivered(connector: Service, session: Session, table: str) -> bool:
    deletes = found(connector, f"{table}.range-deletes")
    return not logged(session, table) - found(connector, table) - deletes
