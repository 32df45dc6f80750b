"""Playing a seeded recording: its tables and writes on a server, and what the server's logs and tables hold then.

In: a recording (of which only tables and writes are looked at) and a server. Out: a recording of the same writes, as
this server took them, in the names and at the times of the first, so that the two can be laid side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from connector.cql_names import quote_identifier
from connector.errors import EmbeddedError
from embedded.scylla.recordings.files import Batch, Place, Seeded, Write
from embedded.scylla.recordings.server import Server
from embedded.scylla.recordings.tables import LogRow, Table, batches, partition_texts

# Servers refuse timestamps 5 s ahead of their clocks; ours is known to a few ms, another node's perhaps less well.
_AHEAD_US = 3_000_000
# Streams begin when their table is made; a timestamp before that would be "from the past".
_LATER_US = 200_000
_TIMESTAMP = re.compile(r"\bUSING\b.*?\bTIMESTAMP\s+\?", re.IGNORECASE | re.DOTALL)


def play_seeded(server: Server, recording: Seeded, progress: Callable[[int], None] = lambda done: None) -> Seeded:
    """The whole recording, in a keyspace that is gone afterwards."""
    with server.keyspace(recording.tablets) as keyspace:
        for name, fields in recording.types.items():
            columns = ", ".join(f"{quote_identifier(field)} {kind}" for field, kind in fields)
            server.run(f"CREATE TYPE {keyspace}.{quote_identifier(name)} ({columns})")
        for _, text in recording.creates:
            server.run(_in_keyspace(text, recording.keyspace, keyspace))
        shift = server.now_us() + _LATER_US - _floor(recording)
        played = replace(recording, writes=[], logs={}, rows={}, keys={}, version=server.version)
        for done, write in enumerate(recording.writes):
            statements = [
                (_in_keyspace(text, recording.keyspace, keyspace), values) for text, values in write.statements
            ]
            moments = [moment for each in write.statements for moment in timestamps(*each)]
            if moments:
                server.wait_until_us(max(moments) + shift - _AHEAD_US)
            answer = server.write(statements, shift)
            if isinstance(answer, dict):
                answer["message"] = answer["message"].replace(keyspace, recording.keyspace)
            played.writes.append(replace(write, answer=answer))
            progress(done)
        for table, _ in recording.creates:
            described = Table(server, keyspace, table)
            played.logs[table] = _log(described.log(), shift) if described.has_log() else {}
            played.rows[table] = described.rows()
            played.keys[table] = described.key
        return played


def timestamps(text: str, values: list[str | None]) -> list[int]:
    """The write timestamps among a statement's bound values."""
    found = []
    for match in _TIMESTAMP.finditer(text):
        at = text.count("?", 0, match.end()) - 1
        value = values[at] if at < len(values) else None
        if value is not None and len(value) == 16:
            found.append(int.from_bytes(bytes.fromhex(value), "big", signed=True))
    return found


def moments(write: Write) -> set[int]:
    return {moment for each in write.statements for moment in timestamps(*each)}


def _floor(recording: Seeded) -> int:
    """The earliest timestamp that is written, however early the recording says that it began."""
    every = [moment for write in recording.writes for moment in moments(write)]
    if not every:
        raise EmbeddedError(f"the recording of {recording.keyspace} has no write with a timestamp of its own")
    return min(every)


def _log(rows: list[LogRow], shift: int) -> dict[Place, list[Batch]]:
    places: dict[Place, list[LogRow]] = {}
    for each in rows:
        places.setdefault((partition_texts(each), each.us - shift), []).append(each)
    return {
        place: list(batches(found))
        for place, found in sorted(places.items(), key=lambda each: (each[0][1], each[0][0]))
    }


def _in_keyspace(text: str, recorded: str, ours: str) -> str:
    return re.sub(rf'(?<![\w"$]){re.escape(recorded)}(?=\s*\.)', ours, text)
