"""Answers without what depends on the machine: what is left must be equal wherever the statement is asked.

In: an answer in the words of recordings. Out: the same with addresses, ids and times replaced by what they look like.
Everything else is compared as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from embedded.scylla.recordings.comparison import paired

_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
# "2026/11/22 13:46:02.928270000": the digits differ, how many there are does not.
_MOMENT = re.compile(r"current server time: [0-9/]+ [0-9:.]+")
# What is left of a waiting time depends on how long the statements before took.
_LEFT_TO_WAIT = re.compile(r"(?<=Please retry after )\d+(?= seconds)")
_HOST_ERROR = re.compile(r"<Host: [^>]*>: (.*?)(?=, <Host: |\}\)\Z)", re.DOTALL)
# Columns whose values are times or made anew for each answer.
_MADE_ANEW = re.compile(r"(?:writetime|ttl|system\.(?:now|uuid|current\w+)|totimestamp|todate|tounixtimestamp)\(", re.I)

# What each node says about itself: where it is, who it is, since when, and which tokens chance gave it.
LOCAL_OF_THE_MACHINE = frozenset(
    (
        "broadcast_address",
        "broadcast_port",
        "cluster_name",
        "data_center",
        "gossip_generation",
        "host_id",
        "listen_address",
        "listen_port",
        "rack",
        "rpc_address",
        "rpc_port",
        "schema_version",
        "tokens",
        "truncated_at",
    )
)
# The port for connections to a shard, how many shards there are, which of them answered, and how tokens map to them.
SUPPORTED_OF_THE_MACHINE = frozenset(
    (
        "SCYLLA_NR_SHARDS",
        "SCYLLA_SHARD",
        "SCYLLA_SHARDING_IGNORE_MSB",
        "SCYLLA_SHARD_AWARE_PORT",
        "SCYLLA_SHARD_AWARE_PORT_SSL",
    )
)


def answer_shape(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to a statement: columns and rows, or error and message."""
    if "error" in answer:
        error, message = answer["error"], message_shape(str(answer.get("message", "")))
        # The driver asks another node after a server error, and then tells that no node is left.
        if error == "NoHostAvailable" and "code=0000 [Server error]" in message:
            error = "ServerError"
        return {"error": error, "message": message}
    columns = answer.get("columns") or []
    anew = [bool(_MADE_ANEW.match(name)) for name in columns]
    rows = [
        [value_shape(value) if shaped else _cell(value) for value, shaped in zip(row, anew, strict=True)]
        for row in answer.get("rows") or []
    ]
    return {"columns": columns, "rows": rows}


def message_shape(message: str) -> str:
    if message.startswith("('Unable to complete the operation"):
        # One node or several: what they say is the answer, how many were asked is not.
        message = "; ".join(sorted(set(_HOST_ERROR.findall(message)))) or message
    message = _MOMENT.sub(lambda match: re.sub(r"\d", "0", match[0]), message)
    return _UUID.sub("<uuid>", _LEFT_TO_WAIT.sub("#", message))


def value_shape(value: Any) -> Any:
    """The kind of a value, and the number of its digits."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return re.sub(r"[0-9a-f]+", "#", value)
    return f"{type(value).__name__} of {len(str(value))} digits"


def _cell(value: Any) -> Any:
    """Histories have lists as JSON has them, answers as Python's `repr`; floats may be either too."""
    return repr(value) if isinstance(value, float | list) else value


def supported_shapes(
    recorded: dict[str, list[str]], played: dict[str, list[str]]
) -> Iterator[tuple[str, list[str] | None, list[str] | None]]:
    """Each option by name, with what either server says. A port for connections to a shard is offered where there are
    shards to choose from, one with TLS where there is TLS: not to have it is no difference."""
    for name, expected, got in paired(recorded, played):
        if name.startswith("SCYLLA_SHARD_AWARE_PORT") and (expected is None or got is None):
            continue
        left, right = (each and supported_shape(name, each) for each in (expected, got))
        yield name, left, right


def local_shape(name: str, value: str) -> str:
    if name in LOCAL_OF_THE_MACHINE:
        return "of the machine"
    return ",".join(sorted(value.split(","))) if name == "supported_features" else value


def supported_shape(name: str, values: list[str]) -> list[str]:
    return [re.sub(r"\d+", "#", value) for value in values] if name in SUPPORTED_OF_THE_MACHINE else values
