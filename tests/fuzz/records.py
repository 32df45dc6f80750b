"""Fuzzers of records in topics that processes share: wishes, definitions, reports, tenures, snapshots.

In: a ``random.Random``. Out: nothing; every exception but those that are caught here is a defect.
"""

from __future__ import annotations

import copy
import functools
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from connector.config import Configuration
from connector.errors import CdcError
from connector.offsets_entry import OffsetsEntry
from connector.table_name import TableName
from connector.topology import parse_tenure
from connector.worker.one_group import _parsed
from connector.worker.processes import Processes
from connector.worker.reports import _take
from connector.worker.schemas import _key
from connector.worker.shared_state import SharedState
from connector.worker.signals import parse_signal
from tests.config.files import CONNECTOR, loaded, validate
from tests.config.test_config_junk import NAMES
from tests.fuzz.spoilt import SCALARS, bytes_of, spoilt
from tests.topology.single import TABLE, WHOLE, Single, tablets


@functools.cache
def _configuration() -> Configuration:
    return loaded()


def _loads(connector: str, config: dict[str, str] | None) -> None:
    """As a run without files takes a definition: what is wrong with it is a list of problems."""
    if config is not None:
        validate(config, {}, {})


def config_records(draw: random.Random) -> None:
    """What is heard of connectors: wishes, definitions, events, in a topic that Kafka Connect may share."""
    state = SharedState(_configuration())
    state._directed, state._defined = (lambda connector, target: None), _loads
    state._told = lambda connector, event, content: None
    state._listens = True
    kind, content = draw.choice(
        [
            ({"wish": "target"}, {"target": draw.choice(["PAUSED", "RUNNING", "x"]), "at": 1}),
            ({"wish": "config"}, {"config": {**CONNECTOR, draw.choice(NAMES): "x"}}),
            ({"event": "restart"}, {"tasks": [0], "id": "i"}),
            ({"event": "log level"}, {"logger": "connector", "level": 10, "id": "i"}),
        ]
    )
    key = ["orders", {"group": state.group_id, **kind}]
    given = key if draw.random() < 0.5 else spoilt(draw, key)
    for _ in range(2):
        value = (
            None if draw.random() < 0.1 else bytes_of(draw, content if draw.random() < 0.3 else spoilt(draw, content))
        )
        state._take([(0, bytes_of(draw, given), value)])


_STATUS = json.loads((Path(__file__).parents[1] / "worker" / "status.json").read_text())


def status_records(draw: random.Random) -> None:
    """What workers and processes say of themselves."""
    found: dict[str, Any] = {}
    worker = copy.deepcopy(next(iter(_STATUS["workers"]), {}))
    for _ in range(2):
        key = spoilt(draw, ["orders", {"worker": "w"}], 2) if draw.random() < 0.3 else ["orders", {"worker": "w"}]
        _take("orders", bytes_of(draw, key), bytes_of(draw, spoilt(draw, worker, 5)), found)
    process = {"id": "p", "started_ms": 1, "at_ms": draw.choice([1, 2**41, 2**70]), "connectors": [_view_document()]}
    heard = Processes.__new__(Processes)
    heard._group_id, heard.id, heard._others = "workers", "own", {}
    heard._monotonic, heard._echoed = time.monotonic, None
    key = ["", {"group": "workers", "process": "p"}]
    heard._hear(
        bytes_of(draw, spoilt(draw, key, 2)), None if draw.random() < 0.1 else bytes_of(draw, spoilt(draw, process, 5))
    )
    heard._hear(bytes_of(draw, key), bytes_of(draw, spoilt(draw, process, 5)))


def _view_document() -> dict[str, Any]:
    instance = {"state": "RUNNING", "worker_id": "w", "version": "1", "trace": None}
    return {"name": "orders", "config": {}, "instance": instance, "tasks": [instance], "topics": ["t"]}


def tenures_and_schemas(draw: random.Random) -> None:
    """Which group runs the connector; which version of a table was written last."""
    key = ["orders", {"group": "g", "term": draw.choice([1, 2**70]), "id": "i"}]
    tenure = _parsed(bytes_of(draw, spoilt(draw, key)), bytes_of(draw, spoilt(draw, {"confirmed": True})))
    if tenure is not None:
        assert tenure.group.encode() and tenure.term >= 1
    members = {name: draw.choice(SCALARS) for name in ("group", "term", "id")}
    parse_tenure(members, {})
    version = {"keyspace_name": "ks", "table_name": "t", "version": "v"}
    _key(bytes_of(draw, spoilt(draw, version)))


def snapshot_records(draw: random.Random) -> None:
    """Snapshots and their progress, in a planner that has the rest of the slot: each is taken or refused."""
    names = {"keyspace_name": TABLE.keyspace, "table_name": TABLE.name}
    mark = {"read_to": 9_500, "stream_set": 9_000, "start": 9_000, "owner": "w", "rechecked": 9_000}
    snapshot = {**names, "snapshot": "1"}
    entries = [
        ({**names, "slot": 0, "slots": 1}, mark),
        (snapshot, {"kind": "initial", "began": 9_100, "ended": draw.choice([None, 9_200])}),
        ({**snapshot, "behind": draw.choice([-(2**63), 0])}, {"upto": draw.choice([0, 2**63 - 1])}),
        ({**snapshot, "behind": 5}, {"upto": -5}),
    ]
    records = []
    for key, value in entries:
        if draw.random() < 0.4:
            key = cast(Any, spoilt(draw, key, 2))
        if draw.random() < 0.4:
            value = cast(Any, spoilt(draw, value, 2))
        if isinstance(key, dict) and isinstance(value, dict | None):
            records.append(OffsetsEntry(0, key, value, "positions", len(records)))
    try:
        single = Single(tablets(9_000, WHOLE), now=10_000, records=records, initial_snapshot=True)
        single.read_all()
        single.planner.openings(single.now)
        single.commit(move_marks=True)
    except CdcError:
        pass


_EXPRESSIONS = [
    "ks.t",
    ".*",
    "(",
    "a{9}",
    "[",
    "\\",
    "(a|b)",
    "a+",
    "?",
    "x" * 40,
    "{",
    "(" * 500,
    "9" * 30,
    "}",
    "(?i)",
]


def signals(draw: random.Random) -> None:
    """What is wanted of snapshots: whatever is taken says soon which tables it means."""
    tables = ["".join(draw.choices(_EXPRESSIONS, k=draw.randrange(6))) for _ in range(2)]
    signal = {
        "id": "s",
        "type": draw.choice(["execute-snapshot", "stop-snapshot", "log", "x"]),
        "data": {"data-collections": tables, "additional-conditions": [{"data-collection": tables[0], "filter": "f"}]},
    }
    try:
        parsed = parse_signal(bytes_of(draw, signal if draw.random() < 0.5 else spoilt(draw, signal, 4)))
    except ValueError as error:
        assert str(error)
        return
    parsed.wish(1, TableName("k" * 48, "x" * 48))
    str(parsed.message).encode()


FUZZERS: dict[str, Callable[[random.Random], None]] = {
    "config-records": config_records,
    "status-records": status_records,
    "tenures-and-schemas": tenures_and_schemas,
    "snapshot-records": snapshot_records,
    "signals": signals,
}
