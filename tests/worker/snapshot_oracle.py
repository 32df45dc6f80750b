"""An independent consumer of a topic with a snapshot in it: it folds each key's records in their order, and compares.

In: the rows of a table from before its log, the records of its topics (legacy, with deltas of collections), what the
table holds at the end. Out: every breach as a line. The oracle is what was written: an `r` must show what the rows from
before and all changes with a time up to its own make of the key.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

Key = tuple[int, int | None]
State = dict[str, Any]

COLUMNS = ("v", "n", "m", "l", "e")
STATICS = ("s",)
COLLECTIONS = ("m", "l", "e")
# In the order of lists elements from before stand here, between those in front of them and those behind them.
_MIDDLE = 0x01B21DD213814000 + 1_262_304_000 * 10_000_000


def key_of(record: dict[str, Any]) -> Key:
    key = json.loads(record["key"])
    return key["pk"], key.get("ck")


def by_key(records: list[dict[str, Any]]) -> dict[Key, list[dict[str, Any]]]:
    """The values of each key in the order of its partition."""
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record["partition"], record["offset"])):
        if record["value"] is not None:
            found[key_of(record)].append(record["value"])
    return found


def applied(state: State | None, value: dict[str, Any]) -> State | None:
    """A key's state after one record."""
    if value["op"] == "d":
        return None
    before = {} if state is None or value["op"] == "r" else state
    after = dict(before)
    for column in (*COLUMNS, *STATICS):
        cell = value["after"].get(column)
        if cell is None:
            continue
        written = cell["value"]
        if column in COLLECTIONS and written is not None:
            elements = {} if written["mode"] == "overwrite" else dict(before.get(column) or {})
            for each in written["elements"] or ():
                elements[each["key"]] = each["value"]
            written = {name: number for name, number in elements.items() if number is not None} or None
        after[column] = written
    if value["op"] == "c":
        after["marker"] = True
    elif value["op"] == "r":
        # No SELECT tells whether the row was inserted, or lives by its values alone.
        after["marker"] = (state or {}).get("marker", "unknown")
    return after


def shown(state: State | None, static: bool) -> State | None:
    """What SELECT shows of it."""
    if state is None:
        return None
    cells = {column: state.get(column) for column in (STATICS if static else COLUMNS)}
    if all(cell is None for cell in cells.values()) and (static or not state.get("marker")):
        return None
    if cells.get("l"):
        cells["l"] = [cells["l"][each] for each in sorted(cells["l"], key=_place)]
    if cells.get("e"):
        cells["e"] = sorted(cells["e"])
    return cells


def _place(key: str) -> tuple[int, str]:
    return uuid.UUID(key).time, key


def breaches(
    old: dict[Key, State],
    records: list[dict[str, Any]],
    now: dict[Key, State],
    deletes: list[dict[str, Any]] | None = None,
) -> list[str]:
    """``deletes``: records of the deletes of several rows."""
    found: list[str] = []
    keys = by_key(records)
    several = [each["value"] for each in deletes or ()]
    for key in {*old, *keys, *now}:
        values = keys.get(key, [])
        gone = sorted(value["source"]["ts_us"] for value in several if _covers(value, key))
        found += [f"{key}: {text}" for text in _breaches(old.get(key), values, now.get(key), gone, key[1] is None)]
    return found


def _breaches(
    old: State | None, values: list[dict[str, Any]], now: State | None, gone: list[int], static: bool
) -> Iterator[str]:
    snapshots = [value for value in values if value["op"] == "r"]
    if len(snapshots) > 1:
        yield f"{len(snapshots)} rows of the snapshot"
    lived = old is not None
    folded: State | None = None
    true: State | None = None if old is None else {**old, "marker": True}
    last = 0
    for value in [*values, None]:
        at = last if value is None else value["source"]["ts_us"]
        if at < last:
            yield f"{value and value['op']} of {at} behind {last}"
        last = at
        while gone and (value is None or gone[0] <= at):
            gone.pop(0)
            folded = true = None
            lived = False
        if value is None:
            break
        folded = applied(folded, value)
        if value["op"] != "r":
            true = applied(true, value)
            lived = lived and shown(true, static) is not None
        elif shown(folded, static) != shown(true, static):
            yield f"r of {at} shows {shown(folded, static)}, the row was {shown(true, static)}"
    if lived and len(snapshots) != 1:
        yield f"lives throughout, and has {len(snapshots)} rows of the snapshot"
    if shown(true, static) != now:
        yield f"written {shown(true, static)}, the table has {now}"
    elif (snapshots or old is None) and shown(folded, static) != now and not _may_be_gone(folded, static, now):
        yield f"ends with {shown(folded, static)}, the table has {now}"


def _may_be_gone(folded: State | None, static: bool, now: State | None) -> bool:
    """A row of the snapshot that has lost its last value since."""
    if folded is None or static or now is not None or folded.get("marker") != "unknown":
        return False
    return all(folded.get(column) is None for column in COLUMNS)


def _covers(value: dict[str, Any], key: Key) -> bool:
    """A delete of a partition, or of what lies between two bounds of its rows."""
    pk, ck = key
    if value["partition"]["pk"] != pk:
        return False
    if value["kind"] == "partition":
        return True
    if ck is None:
        return False
    start, end = value["start"], value["end"]
    behind = not start["values"] or ck > start["values"][0] or (start["inclusive"] and ck == start["values"][0])
    before = not end["values"] or ck < end["values"][0] or (end["inclusive"] and ck == end["values"][0])
    return bool(behind and before)


def selected(session: Any, table: str) -> dict[Key, State]:
    """What the table holds, static rows apart, as it is shown."""
    return {key: cells for key, state in held(session, table).items() if (cells := shown(state, key[1] is None))}


def held(session: Any, table: str) -> dict[Key, State]:
    """What the table holds, as `applied` keeps it."""
    found: dict[Key, State] = {}
    for row in session.execute(f"SELECT * FROM {table}"):
        cells = row._asdict()
        if row.s is not None:
            found[row.pk, None] = {"s": row.s}
        if row.ck is None:
            continue
        state = {column: cells.get(column) for column in COLUMNS}
        state["m"] = dict(state["m"]) if state["m"] else None
        state["l"] = {_key(at): each for at, each in enumerate(state["l"])} if state["l"] else None
        state["e"] = dict.fromkeys(state["e"], True) if state["e"] else None
        found[row.pk, row.ck] = {**state, "marker": True}
    return found


def _key(number: int) -> str:
    time = _MIDDLE + number
    return str(uuid.UUID(fields=(time & 0xFFFFFFFF, time >> 32 & 0xFFFF, time >> 48 | 0x1000, 0x80, 0, 0)))
