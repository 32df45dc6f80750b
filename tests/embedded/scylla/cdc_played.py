"""A history played on a server and on the model at once, and rows of a log as the model writes them.

In: a history and how to execute CQL; decoded log rows, without what is null. Out: `ModelRow`s in the log's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from connector.timeuuid import micros_of
from tests.embedded.scylla.cdc_model import BaseTable, ModelRow, Request
from tests.embedded.scylla.cdc_model_log import ModelLog
from tests.embedded.scylla.cdc_rows import list_position
from tests.embedded.scylla.cdc_statements import History

_FIXED = ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$ttl", "cdc$end_of_batch")


def play(execute: Callable[[str], object], table: str, history: History, base: int) -> list[ModelRow]:
    """Run the history on the server and on the model; gives the model's log."""
    options = history.options
    model = ModelLog(history.shape, options["preimage"], options["postimage"] == "true", options["delta"])
    rows = BaseTable(history.shape)
    expected: list[ModelRow] = []
    for statements in history.requests:
        request = Request()
        for statement in statements:
            statement.apply(history.shape, request)
        expected += model.rows(rows, request)
        rows.apply(request)
        texts = [statement.cql(history.shape, table, base) for statement in statements]
        execute(texts[0] if len(texts) == 1 else f"BEGIN BATCH {'; '.join(texts)}; APPLY BATCH")
    return _ordered(expected)


def as_modelled(logged: Iterable[Mapping[str, Any]], base: int) -> list[ModelRow]:
    rows = []
    for row in logged:
        values = dict(row)
        if "l" in values:
            values["l"] = [(list_position(key, base), value) for key, value in dict(values["l"]).items()]
        rows.append(
            ModelRow(
                micros_of(values["cdc$time"].bytes) - base,
                values["cdc$batch_seq_no"],
                values["cdc$operation"],
                values.get("cdc$ttl"),
                values.get("cdc$end_of_batch", False),
                {name: value for name, value in values.items() if name not in _FIXED},
            )
        )
    return _ordered(rows)


def _ordered(rows: list[ModelRow]) -> list[ModelRow]:
    return sorted(rows, key=lambda row: (row.time, row.number))
