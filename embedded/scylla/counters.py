"""What the server did so far, in numbers: requests, errors, rows and bytes, by node and by table.

In: one call per request. Out: a mapping for the admin interface.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Plain sums since start or since the last reset."""

    connections: int = 0
    refused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    protocol_errors: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    requests_by_node: Counter[str] = field(default_factory=Counter)
    pages_by_table: Counter[str] = field(default_factory=Counter)
    rows_by_table: Counter[str] = field(default_factory=Counter)

    def served(self, keyspace: str, table: str, rows: int) -> None:
        name = f"{keyspace}.{table}"
        self.pages_by_table[name] += 1
        self.rows_by_table[name] += rows

    def reset(self) -> None:
        fresh = Counters()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))

    def describe(self) -> dict[str, object]:
        return {
            name: dict(value) if isinstance(value := getattr(self, name), Counter) else value for name in self.__slots__
        }
