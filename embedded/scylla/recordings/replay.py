"""Replaying a recording: run it on a server, and compare the outcome with what was recorded.

In: a recording and a server. Out: a `Comparison`, in which the double's known deviations are set apart.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from itertools import chain
from threading import Lock
from typing import Any

from embedded.scylla.recordings.comparison import Comparison, paired
from embedded.scylla.recordings.deviations import set_apart
from embedded.scylla.recordings.files import Answers, Batch, Histories, Place, Recording, Seeded
from embedded.scylla.recordings.scripted import play_answers, play_histories
from embedded.scylla.recordings.seeded import moments, play_seeded
from embedded.scylla.recordings.server import Server
from embedded.scylla.recordings.shapes import answer_shape, local_shape, message_shape, supported_shapes
from embedded.scylla.recordings.spelling import canonical

_LITERAL = Lock()  # the parser of CPython 3.11 counts its depth once for all threads, and fails when two of them parse
_SPELLED = re.compile(r"0x[0-9a-f]*|[A-Z]\w+\(.*\)|-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)", re.DOTALL)


def replay(server: Server, recording: Recording, progress: Callable[[int], None] = lambda done: None) -> Comparison:
    """Raises `SkippedRecording` when the server cannot do what the recording needs."""
    comparison = Comparison(recording.version, server.version)
    if isinstance(recording, Seeded):
        _compare_seeded(comparison, recording, play_seeded(server, recording, progress))
    elif isinstance(recording, Answers):
        _compare_answers(comparison, recording, play_answers(server, recording, progress))
    else:
        _compare_histories(comparison, recording, play_histories(server, recording, progress))
    if server.is_double:
        set_apart(comparison)
    return comparison


def _compare_seeded(comparison: Comparison, recorded: Seeded, played: Seeded) -> None:
    for expected, got in zip(recorded.writes, played.writes, strict=True):
        comparison.compared["statements"] += len(expected.statements)
        comparison.compared["answers"] += 1
        if not _same_answer(expected.answer, got.answer):
            place = "; ".join(text for text, _ in expected.statements)
            comparison.same("answer", place, expected.answer, got.answer)
    written: dict[int, list[str]] = {}
    for write in recorded.writes:
        for moment in moments(write):
            written.setdefault(moment, []).extend(text for text, _ in write.statements)
    for table, _ in recorded.creates:
        for (partition, us), expected, got in paired(_places(recorded, table), _places(played, table)):
            left, right = _in_any_order(expected or []), _in_any_order(got or [])
            comparison.compared["log rows"] += sum(map(len, expected or []))
            if left != right:
                mine = [text for text in written.get(us, []) if f".{table} " in text]
                place = f"{table} ({', '.join(partition)}) at {us}: {'; '.join(dict.fromkeys(mine))}"
                rows, others = list(chain.from_iterable(left)), list(chain.from_iterable(right))
                if rows == others:
                    comparison.same("log", place, left, right)  # the same rows in other batches
                comparison.rows("log", place, rows, others)
        _compare_rows(comparison, table, recorded.rows.get(table, []), played.rows[table], played.keys[table])


def _places(recording: Seeded, table: str) -> dict[Place, list[Batch]]:
    """The log, with partitions spelled in one way: recorders differ in whether `repr` is applied before or after the
    spelling of JSON, as in `UUID('…')` and `"UUID('…')"`."""
    log = recording.logs.get(table, {})
    return {(tuple(_one_spelling(part) for part in partition), us): rows for (partition, us), rows in log.items()}


def _one_spelling(part: str) -> str:
    try:
        with _LITERAL:
            value = ast.literal_eval(part)
    except (ValueError, SyntaxError):
        return part
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return value if isinstance(value, str) and _SPELLED.fullmatch(value) else part


def _in_any_order(log: list[Batch]) -> list[Batch]:
    """Batches of one write timestamp have times that differ in a random part only: no order can be expected."""
    return sorted(log, key=canonical)


def _compare_rows(comparison: Comparison, table: str, expected: list[str], got: list[str], key: list[str]) -> None:
    def by_key(rows: list[str]) -> dict[str, Any]:
        parsed = [json.loads(row) for row in rows]
        return {canonical([row.get(name) for name in key]): row for row in parsed}

    comparison.compared["base rows"] += len(expected)
    for place, left, right in paired(by_key(expected), by_key(got)):
        comparison.same("row", f"{table} {place}", left, right)


def _same_answer(expected: Any, got: Any) -> bool:
    """Seeded recordings say `ok`, or what was wrong: as answers have it, or as one text."""
    if not isinstance(got, dict) or expected == "ok":
        return bool(expected == got)
    if isinstance(expected, dict):
        return answer_shape(expected) == answer_shape(got)
    error, message = got["error"], message_shape(got["message"])
    return message_shape(str(expected)) in (error, message, f"{error}: {message}", f"{error}({message!r})")


def _compare_answer(comparison: Comparison, expected: dict[str, Any], got: dict[str, Any]) -> None:
    comparison.compared["statements"] += 1
    comparison.compared["answers"] += 1
    left, right = answer_shape(expected), answer_shape(got)
    if left != right:
        comparison.same("answer", expected["statement"], left, right)


def _compare_answers(comparison: Comparison, recorded: Answers, played: Answers) -> None:
    for expected, got in zip(recorded.answers, played.answers, strict=True):
        _compare_answer(comparison, expected, got)
    if recorded.supported:
        for option, left, right in supported_shapes(recorded.supported, played.supported):
            comparison.compared["options of SUPPORTED"] += 1
            comparison.same("supported", option, left, right)
    if recorded.local:
        for name, expected, got in paired(recorded.local, played.local):
            comparison.compared["columns of system.local"] += 1
            shapes = [None if each is None else local_shape(name, each) for each in (expected, got)]
            comparison.same("local", name, *shapes)
    if recorded.columns:
        for name, expected, got in paired(recorded.columns, played.columns):
            comparison.compared["system tables"] += 1
            _compare_table(comparison, name, expected, got)


def _compare_table(
    comparison: Comparison, name: str, expected: list[list[Any]] | None, got: list[list[Any]] | None
) -> None:
    if expected is None or got is None:
        comparison.same("system table", name, expected and "the table", got and "the table")
    else:
        comparison.rows("system table", name, sorted(map(list, expected)), sorted(got))


def _compare_histories(comparison: Comparison, recorded: Histories, played: Histories) -> None:
    before: tuple[Any, Any] = ([], [])
    for number, (expected, got) in enumerate(zip(recorded.statements, played.statements, strict=True), 1):
        _compare_answer(comparison, expected, got)
        if "columns_after" in expected:
            left, right = sorted(map(list, expected["columns_after"])), sorted(got["columns_after"])
            comparison.compared["columns"] += len(left)
            if (left, right) != before:
                # Told once, where it begins: the following statements leave most columns as they are.
                comparison.rows("columns", f"after statement {number}, {expected['statement']}", left, right)
            before = (left, right)
    for table, expected, got in paired(recorded.logs, played.logs):
        for partition, left, right in paired(_partitions(expected), _partitions(got)):
            comparison.compared["log rows"] += len(left or [])
            comparison.rows("log", f"{table} {partition}", left or [], right or [])


def _partitions(log: dict[str, Batch] | None) -> dict[str, Batch]:
    """Keys are JSON texts, whoever wrote them and with whatever spaces."""
    return {json.dumps(json.loads(key)): rows for key, rows in (log or {}).items()}
