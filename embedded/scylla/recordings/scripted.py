"""Playing recordings of answers and histories: statements as texts, one after the other, each with its answer.

In: such a recording (of which only the statements, and whether they were refused, are looked at) and a server. Out: a
recording of the same statements as this server took them, with `{k}` where its keyspace is named.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from connector.cql_names import LOG_SUFFIX
from embedded.scylla.recordings.files import Answers, Histories
from embedded.scylla.recordings.server import Server
from embedded.scylla.recordings.spelling import plain, plain_with_lists
from embedded.scylla.recordings.tables import Table, partition_json

# What is there when the first statement of a recording of answers comes; recordings do not say it.
SETUP = (
    "CREATE TYPE {k}.ut (a int, b text)",
    "CREATE TABLE {k}.t (pk int, ck int, s int static, v int, l list<int>, m map<int, int>, st set<int>, u ut,"
    " PRIMARY KEY (pk, ck)) WITH cdc = {'enabled': true, 'preimage': true}",
    "CREATE TABLE {k}.p (pk int PRIMARY KEY, v int)",
    "CREATE TABLE {k}.c (pk int PRIMARY KEY, n counter)",
)
SYSTEM_KEYSPACES = ("system", "system_schema", "system_distributed", "system_distributed_everywhere")

# A column that was dropped can be added again 5 s later; one more, for clocks.
_ADD_AGAIN_SECONDS = 6.0
_ALTER = re.compile(r"\s*ALTER\s+TABLE\s+(\S+)\s+(ADD|DROP)\s+(.*)", re.IGNORECASE | re.DOTALL)
_CREATE_ROLE = re.compile(r"\s*CREATE\s+(?:ROLE|USER)\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_DROP_TABLE = re.compile(r"\s*DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?\{k\}\.(\w+)\s*;?\s*\Z", re.IGNORECASE)

Progress = Callable[[int], None]


def play_answers(server: Server, recording: Answers, progress: Progress = lambda done: None) -> Answers:
    """All statements, then what the server tells about itself."""
    with server.keyspace(recording.tablets) as keyspace:
        script = _Script(server, keyspace, plain)
        for text in SETUP:
            # A server that has no counters, say, shows it in the answers that are compared.
            script.ask(text, refused=False)
        answers = []
        try:
            for done, each in enumerate(recording.answers):
                answers.append({**script.ask(each["statement"], "error" in each), "statement": each["statement"]})
                progress(done)
        finally:
            script.drop_roles()
    return Answers(
        answers,
        columns=_system_columns(server),
        local=_local(server),
        supported=server.supported(),
        tablets=recording.tablets,
        version=server.version,
    )


def play_histories(server: Server, recording: Histories, progress: Progress = lambda done: None) -> Histories:
    """All statements with the columns after each, then the logs of all tables that have one or had one when dropped."""
    with server.keyspace(recording.tablets) as keyspace:
        script = _Script(server, keyspace, plain_with_lists)
        statements: list[dict[str, Any]] = []
        logs: dict[str, dict[str, list[Any]]] = {}
        for done, each in enumerate(recording.statements):
            text = each["statement"]
            if dropped := _DROP_TABLE.match(text):
                logs |= _logs(server, keyspace, [dropped[1]], ", dropped")
            answer = script.ask(text, "error" in each)
            columns = sorted(_columns(server, keyspace))
            statements.append({"statement": text, **answer, "columns_after": columns})
            progress(done)
        tables = sorted({name for name, *_ in _columns(server, keyspace)})
        logs |= _logs(server, keyspace, tables)
    return Histories(recording.keyspace, recording.tablets, statements, logs, server.version)


class _Script:
    """Asks statements in a keyspace, and waits where a column that was dropped is to be added again."""

    def __init__(self, server: Server, keyspace: str, spell: Callable[[Any], Any]) -> None:
        self._server = server
        self._spell = spell
        self._keyspace = keyspace
        self._dropped: dict[tuple[str, str], float] = {}
        self._roles: list[str] = []

    def ask(self, text: str, refused: bool) -> dict[str, Any]:
        """The answer. `refused` says that the recorded one is an error, perhaps because it came too soon."""
        altered = _ALTER.match(text)
        names = _column_names(altered[3]) if altered else []
        if altered and altered[2].upper() == "ADD" and not refused:
            again = [self._dropped[altered[1], name] for name in names if (altered[1], name) in self._dropped]
            if again:
                time.sleep(max(0.0, max(again) + _ADD_AGAIN_SECONDS - time.monotonic()))
        answer = self._server.ask(text.replace("{k}", self._keyspace), self._spell)
        if altered and altered[2].upper() == "DROP" and "error" not in answer:
            self._dropped |= {(altered[1], name): time.monotonic() for name in names}
        if (role := _CREATE_ROLE.match(text)) and "error" not in answer:
            self._roles.append(role[1])
        renamed: dict[str, Any] = self._without_keyspace(answer)
        return renamed

    def drop_roles(self) -> None:
        """Roles are no part of a keyspace: those that a login was allowed to make go by themselves."""
        while self._roles:
            self._server.run(f"DROP ROLE IF EXISTS {self._roles.pop()}")

    def _without_keyspace(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(self._keyspace, "{k}")
        if isinstance(value, list):
            return [self._without_keyspace(each) for each in value]
        if isinstance(value, dict):
            return {key: self._without_keyspace(each) for key, each in value.items()}
        return value


def _column_names(text: str) -> list[str]:
    """The columns that an ALTER adds or drops: the first word between commas outside of brackets."""
    body, depth, parts = text.strip().rstrip(";").strip(), 0, [""]
    if body.startswith("(") and body.endswith(")"):
        body = body[1:-1]
    for letter in body:
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.split()[0] for part in parts if part.split()]


def _columns(server: Server, keyspace: str) -> list[list[Any]]:
    return server.texts(
        "SELECT table_name, column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = %s",
        keyspace,
    )


def _logs(server: Server, keyspace: str, names: list[str], suffix: str = "") -> dict[str, dict[str, list[Any]]]:
    logs: dict[str, dict[str, list[Any]]] = {}
    for name in names:
        table = Table(server, keyspace, name)
        if name.endswith(LOG_SUFFIX) or not table.has_log():
            continue
        log = logs.setdefault(name + suffix, {})
        for each in table.log():
            log.setdefault(partition_json(each), []).append(each.row)
    return logs


def _system_columns(server: Server) -> dict[str, list[list[Any]]]:
    found: dict[str, list[list[Any]]] = {}
    for keyspace in SYSTEM_KEYSPACES:
        for table, *column in server.texts(
            "SELECT table_name, column_name, kind, position, type, clustering_order"
            " FROM system_schema.columns WHERE keyspace_name = %s",
            keyspace,
        ):
            found.setdefault(f"{keyspace}.{table}", []).append([*column[:4], column[4].upper()])
    return {name: sorted(columns) for name, columns in sorted(found.items())}


def _local(server: Server) -> dict[str, str]:
    answer = server.ask("SELECT * FROM system.local", str)
    (row,) = answer["rows"]
    return dict(sorted(zip(answer["columns"], row, strict=True)))
