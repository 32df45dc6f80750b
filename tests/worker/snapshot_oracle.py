"""An independent consumer of a topic with a snapshot in it: it folds each key's records in their order, and compares.

In: the rows of a table from before its log, the records of its topic (legacy, with deltas of collections), what the
table holds at the end. Out: every breach as a line. The oracle is what was written: an `r` must show what the rows from
before and all changes with a time up to its own make of the key.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

Key = tuple[int, int | None]
State = dict[str, Any]

COLUMNS = ("v", "n", "m")
STATICS = ("s",)


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
        if column == "m" and written is not None:
            elements = {} if written["mode"] == "overwrite" else dict(before.get("m") or {})
            for each in written["elements"] or ():
                elements[each["key"]] = each["value"]
            written = {name: number for name, number in elements.items() if number is not None} or None
        after[column] = written
    if value["op"] == "c" or value["op"] == "r":
        after["marker"] = True
    return after


def shown(state: State | None, static: bool) -> State | None:
    """What SELECT shows of it."""
    if state is None:
        return None
    cells = {column: state.get(column) for column in (STATICS if static else COLUMNS)}
    if all(cell is None for cell in cells.values()) and (static or not state.get("marker")):
        return None
    return cells


def breaches(old: dict[Key, State], records: list[dict[str, Any]], now: dict[Key, State]) -> list[str]:
    found: list[str] = []
    keys = by_key(records)
    for key in {*old, *keys, *now}:
        static = key[1] is None
        values = keys.get(key, [])
        snapshots = [value for value in values if value["op"] == "r"]
        if len(snapshots) > 1:
            found.append(f"{key}: {len(snapshots)} rows of the snapshot")
        lived = key in old and all(shown(state, static) is not None for state in _states(old[key], values))
        if lived and len(snapshots) != 1:
            found.append(f"{key}: lives throughout, and has {len(snapshots)} rows of the snapshot")
        folded: State | None = None
        true: State | None = {**old[key], "marker": True} if key in old else None
        last = 0
        for value in values:
            at = value["source"]["ts_us"]
            if at < last:
                found.append(f"{key}: {value['op']} of {at} behind {last}")
            last = at
            folded = applied(folded, value)
            if value["op"] == "r":
                if shown(folded, static) != shown(true, static):
                    found.append(f"{key}: r of {at} shows {shown(folded, static)}, the row was {shown(true, static)}")
            else:
                true = applied(true, value)
        if shown(true, static) != now.get(key):
            found.append(f"{key}: written {shown(true, static)}, the table has {now.get(key)}")
        elif (snapshots or key not in old) and shown(folded, static) != now.get(key):
            found.append(f"{key}: ends with {shown(folded, static)}, the table has {now.get(key)}")
    return found


def _states(old: State, values: list[dict[str, Any]]) -> list[State | None]:
    state: State | None = {**old, "marker": True}
    states = [state]
    for value in values:
        if value["op"] != "r":
            state = applied(state, value)
            states.append(state)
    return states


def selected(session: Any, table: str) -> dict[Key, State]:
    """What the table holds, static rows apart."""
    found: dict[Key, State] = {}
    for row in session.execute(f"SELECT pk, ck, s, v, n, m FROM {table}"):
        if row.s is not None:
            found[row.pk, None] = {"s": row.s}
        if row.ck is not None:
            found[row.pk, row.ck] = {"v": row.v, "n": row.n, "m": dict(row.m) if row.m else None}
    return found
