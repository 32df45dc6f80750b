"""Faults on demand: refused connections, delays, lost connections, and every error a coordinator can answer with.

In: rules as JSON objects from the admin interface. Out: for a request, the first rule that matches and fires. A rule
matches by node, table, statement pattern and opcode; it fires by count, after skipping some, and by a seeded chance.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from embedded.scylla import errors
from embedded.scylla.errors import CqlError
from embedded.scylla.protocol.frame import OPCODE_NAMES, PREPARE
from embedded.scylla.protocol.requests import CONSISTENCY_NAMES

_WRITE_TYPES: Final = ("SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS", "VIEW", "CDC")


class RateLimited(CqlError):
    """ScyllaDB's per-partition rate limit, in the code that SUPPORTED announces."""

    code = 0xF000

    def fields(self) -> bytes:
        # Operation type (1: write), and whether the coordinator itself rejected it.
        return b"\x01\x01"


def _level(consistency: int) -> str:
    return CONSISTENCY_NAMES[consistency]


ERROR_FAULTS: Final[Mapping[str, Callable[[str, int, str], CqlError]]] = {
    "read_timeout": lambda text, level, _: errors.ReadTimeout(
        text or f"Operation timed out - received only 0 responses from 1 CL={_level(level)}.", level, 0, 1
    ),
    "write_timeout": lambda text, level, write_type: errors.WriteTimeout(
        text or f"Operation timed out - received only 0 responses from 1 CL={_level(level)}.", level, 0, 1, write_type
    ),
    "unavailable": lambda text, level, _: errors.Unavailable(
        text or f"Cannot achieve consistency level for cl {_level(level)}. Requires 1, alive 0", level, 1, 0
    ),
    "read_failure": lambda text, level, _: errors.ReadFailure(
        text or f"Operation failed - received 0 responses and 1 failures from 1 CL={_level(level)}.", level, 0, 1
    ),
    "write_failure": lambda text, level, write_type: errors.WriteFailure(
        text or f"Operation failed - received 0 responses and 1 failures from 1 CL={_level(level)}.",
        level,
        0,
        1,
        write_type=write_type,
    ),
    "overloaded": lambda text, *_: errors.Overloaded(text or "Too many in flight hints: 10"),
    "server_error": lambda text, *_: errors.ServerError(text or "Injected server error"),
    "is_bootstrapping": lambda text, *_: errors.IsBootstrapping(text or "Cannot read from a bootstrapping node"),
    "truncate_error": lambda text, *_: errors.TruncateError(text or "Injected truncate error"),
    "invalid": lambda text, *_: errors.InvalidRequest(text or "Injected invalid request"),
    "unauthorized": lambda text, *_: errors.Unauthorized(text or "Injected unauthorized"),
    "rate_limit": lambda text, *_: RateLimited(text or "Per-partition rate limit reached"),
}
# `unprepared` needs the statement's id, the others are no errors at all: the connection deals with them.
ACTIONS: Final = ("refuse", "delay", "drop", "drop_mid_page", "silence", "unprepared", *ERROR_FAULTS)


def table_pattern(full_name: str) -> re.Pattern[str]:
    """Finds `ks.table` in a statement, quoted or not, also where the keyspace is left to the connection."""
    keyspace, _, table = full_name.rpartition(".")

    def spelled(name: str) -> str:
        return rf'(?:"{re.escape(name)}"|{re.escape(name)})'

    before = rf"(?:{spelled(keyspace)}\s*\.\s*)?" if keyspace else ""
    words = r'(?<![\w$"])(?:from|into|update|table|truncate)\s+'
    return re.compile(words + before + spelled(table) + r'(?![\w$."])', re.IGNORECASE)


@dataclass(slots=True)
class Fault:
    """One rule. `when` is "before" the request is carried out, or "after": then a write that fails has happened."""

    id: int
    action: str
    node: int | None = None
    table: str | None = None
    pattern: str | None = None
    opcode: str | None = None
    skip: int = 0
    count: int | None = None
    probability: float = 1.0
    seed: int | None = None
    delay_ms: float = 0.0
    when: str = "before"
    message: str = ""
    write_type: str = "SIMPLE"
    seen: int = 0
    fired: int = 0
    _random: random.Random = field(default_factory=random.Random, repr=False)
    _matches: tuple[re.Pattern[str], ...] = ()

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        patterns = [table_pattern(self.table)] if self.table else []
        if self.pattern:
            patterns.append(re.compile(self.pattern, re.IGNORECASE | re.DOTALL))
        self._matches = tuple(patterns)

    def fires(self, node: int, opcode: str, statements: Iterable[str]) -> bool:
        if self.node is not None and node != self.node:
            return False
        # A PREPARE carries nothing out: it is hit only by rules that say so.
        if opcode != self.opcode and (self.opcode is not None or opcode == OPCODE_NAMES[PREPARE]):
            return False
        if self._matches and not any(all(found.search(text) for found in self._matches) for text in statements):
            return False
        if self.count is not None and self.fired >= self.count:
            return False
        self.seen += 1
        if self.seen <= self.skip or self._random.random() >= self.probability:
            return False
        self.fired += 1
        return True

    def error(self, consistency: int) -> CqlError:
        return ERROR_FAULTS[self.action](self.message, consistency, self.write_type)

    def describe(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}


_OPTIONS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "action": str,
    "node": int,
    "table": str,
    "pattern": str,
    "opcode": str,
    "skip": int,
    "count": int,
    "probability": (int, float),
    "seed": int,
    "delay_ms": (int, float),
    "when": str,
    "message": str,
    "write_type": str,
}


def _checked(rule: Mapping[str, Any]) -> dict[str, Any]:
    problems = []
    for name, value in rule.items():
        if name not in _OPTIONS:
            problems.append(f"unknown option {name!r}; known are {', '.join(_OPTIONS)}")
        elif isinstance(value, bool) or not isinstance(value, _OPTIONS[name]):
            problems.append(f"{name} cannot be {value!r}")
    if rule.get("action") not in ACTIONS:
        problems.append(f"action must be one of {', '.join(ACTIONS)}")
    if rule.get("opcode", "QUERY") not in OPCODE_NAMES.values():
        problems.append(f"opcode must be one of {', '.join(OPCODE_NAMES.values())}")
    if rule.get("when", "before") not in ("before", "after"):
        problems.append("when must be before or after")
    if rule.get("write_type", "SIMPLE") not in _WRITE_TYPES:
        problems.append(f"write_type must be one of {', '.join(_WRITE_TYPES)}")
    if problems:
        raise ValueError("; ".join(problems))
    return dict(rule)


class Faults:
    """The rules in force, asked in the order in which they were added."""

    def __init__(self) -> None:
        self.rules: dict[int, Fault] = {}
        self._next = 1

    def add(self, rule: Mapping[str, Any]) -> Fault:
        """A new rule; `ValueError` names everything that is wrong with it."""
        try:
            fault = Fault(self._next, **_checked(rule))
        except re.error as error:
            raise ValueError(f"pattern is not a regular expression: {error}") from None
        self.rules[fault.id] = fault
        self._next += 1
        return fault

    def remove(self, fault_id: int) -> None:
        del self.rules[fault_id]

    def clear(self) -> None:
        self.rules.clear()

    def refuses(self, node: int) -> bool:
        """Whether a new connection to this node is to be closed at once."""
        rules = [rule for rule in self.rules.values() if rule.action == "refuse"]
        return any(rule.fires(node, "", ()) for rule in rules)

    def strike(self, node: int, opcode: str, statements: Iterable[str]) -> Fault | None:
        """The rule that this request falls to, if any."""
        texts = tuple(statements)
        for rule in self.rules.values():
            if rule.action != "refuse" and rule.fires(node, opcode, texts):
                return rule
        return None
