"""Fuzzers of what is kept in files: positions of Java and of readers, leases and notes in a warehouse.

In: a ``random.Random``. Out: nothing; every exception but those that are caught here is a defect.
"""

from __future__ import annotations

import functools
import json
import os
import random
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

from connector.errors import CdcError, LandingError
from connector.source.read_changes import _parse
from connector.worker.java_offsets import java_offsets
from connector.worker.java_positions_file import read_positions_file
from spark_jobs.sinks.sink import noted_in
from spark_jobs.tables.lease import Lease, _machine
from spark_jobs.tables.notes import Known, known_in, positions_in
from tests.fuzz.spoilt import bytes_of, spoilt, text_of

_KEPT: list[tempfile.TemporaryDirectory[str]] = []
_POSITIONS = sorted((Path(__file__).parents[1] / "worker" / "positions").glob("*.offsets"))


@functools.cache
def _folder() -> Path:
    kept = tempfile.TemporaryDirectory(prefix="scylla-cdc-fuzz-")
    _KEPT.append(kept)
    return Path(kept.name)


def positions_files(draw: random.Random) -> None:
    """A file of connect-standalone, and what is in it."""
    content = bytearray(draw.choice(_POSITIONS).read_bytes())
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(content) + 1)
        content[at : at + draw.randrange(4)] = draw.randbytes(draw.randrange(4))
    path = _folder() / "positions"
    path.write_bytes(content)
    try:
        found = read_positions_file(path)
    except CdcError:
        found = {}
    where = {"keyspace_name": "ks", "table_name": "t", "vnode_id": 1, "generation_start": 1}
    window = "13814000-1dd2-11b2-8080-808080808080"
    value = {"window_start": window, "window_end": window, "change_id_stream_id": "0x00", "change_id_time": window}
    found[bytes_of(draw, ["orders", spoilt(draw, where, 2)])] = bytes_of(draw, spoilt(draw, value, 2))
    list(java_offsets(found, "orders", []))
    mark = {"key": {"keyspace_name": "ks", "table_name": "t", "slot": 0, "slots": 1}, "value": {"read_to": 1}}
    try:
        _parse(text_of(draw, spoilt(draw, [mark])))
    except CdcError:
        pass


class _Folder:
    """Files in memory."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def names(self) -> list[str]:
        return list(self.files)

    def create(self, name: str, text: str) -> bool:
        return self.files.setdefault(name, text) is text

    def read(self, name: str) -> str:
        return self.files[name]

    def write(self, name: str, text: str) -> None:
        self.files[name] = text

    def remove(self, name: str) -> None:
        self.files.pop(name, None)


def leases(draw: random.Random) -> None:
    """Leases of other jobs, and what lies beside them: taken, or refused with the name of the holder."""
    folder = _Folder()
    holder = {
        "what": "land",
        "tables": ["ks.t"],
        "token": "t",
        "host": socket.gethostname(),
        "machine": draw.choice([_machine(), "other"]),
        "pid": draw.choice([os.getpid(), 0, 2**31, 2**40, 2**62]),
        "started": draw.choice(["1", None]),
        "expires_ms": draw.choice([0, 2**42]),
    }
    for _ in range(draw.randrange(1, 4)):
        name = f"{draw.choice(['job', 'other', ''])}.{draw.choice(['1', '2', '²', '9' * 30, '', 'x'])}"
        folder.files[name] = text_of(draw, holder if draw.random() < 0.4 else spoilt(draw, holder, 2))
    lease = Lease(folder, "job", 60_000, tables=["ks.t"])
    lease._stop.set()  # nobody waits for a file that is being written
    try:
        lease.acquire()
        lease.check()
    except LandingError as error:
        assert str(error)
    finally:
        lease.release()


_DEFINITION = json.dumps(
    {
        "keyspace_name": "ks",
        "table_name": "t",
        "version": "v",
        "columns": [{"name": "pk", "type": "int", "kind": "partition_key", "position": 0}],
    }
)


def warehouse_notes(draw: random.Random) -> None:
    """What commits of landed tables say of them: whatever is taken can be used and written again."""
    note = json.loads(Known(definitions=(), backfilled=("a",)).note()) | {"definitions": [_DEFINITION]}
    try:
        known = known_in(text_of(draw, note if draw.random() < 0.3 else spoilt(draw, note, 2)), 1)
        known.note().encode()
        if known.definitions:
            known.layout()
    except LandingError:
        pass
    try:
        for (topic, partition), offset in positions_in(text_of(draw, spoilt(draw, [["t", 0, 1]]))).items():
            assert topic.encode() is not None and partition >= 0 and offset >= 0
    except LandingError:
        pass
    noted_in(text_of(draw, spoilt(draw, {"scylla-cdc": {"segment": 1}}, 2)))


FUZZERS: dict[str, Callable[[random.Random], None]] = {
    "positions-files": positions_files,
    "leases": leases,
    "warehouse-notes": warehouse_notes,
}
