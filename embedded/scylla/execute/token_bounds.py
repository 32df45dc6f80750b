"""What relations on `token(…)` leave of the ring.

In: token relations, one after the other. Out: per execution the first and the last token that may be read.
"""

from __future__ import annotations

from connector.values import native
from embedded.scylla.cql.tree import TokenRelation
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.candidates import required
from embedded.scylla.execute.filters import relation_text
from embedded.scylla.execute.run import Bound, Run
from embedded.scylla.execute.terms import Scope, compile_term
from embedded.scylla.schema import Table
from embedded.scylla.tokens import MAX_TOKEN, MIN_TOKEN

_VALUE_NAME = "partition key token"


class TokenBounds:
    """Of one WHERE clause. `restricted`: it has token relations at all."""

    def __init__(self) -> None:
        self.restricted = False
        # The value of a bound, and whether it is inside.
        self._lower: tuple[Bound, bool] | None = None
        self._upper: tuple[Bound, bool] | None = None

    def add(self, relation: TokenRelation, table: Table, scope: Scope) -> None:
        wanted = tuple(column.name for column in table.partition_key)
        if relation.columns != wanted:
            raise InvalidRequest(
                f"The token function arguments must be in the partition key order: {', '.join(wanted)}"
            )
        value = compile_term(relation.value, _VALUE_NAME, native("bigint"), scope)
        operator = relation.operator
        if operator == "!=":
            raise InvalidRequest(f'Unsupported "!=" relation: {relation_text(relation)}')
        if operator not in ("=", "<", "<=", ">", ">="):
            raise InvalidRequest(f"{operator} cannot be used with the token function")
        self.restricted = True
        if operator in (">", ">=", "="):
            self._lower = (value, operator != ">")
        if operator in ("<", "<=", "="):
            self._upper = (value, operator != "<")

    def range(self, run: Run) -> tuple[int, int]:
        """Both inclusive; everything without a token relation."""
        low, high = MIN_TOKEN, MAX_TOKEN
        if self._lower is not None:
            value, inclusive = self._lower
            token = _token(value, run)
            low = token if inclusive else token + 1
        if self._upper is not None:
            value, inclusive = self._upper
            token = _token(value, run)
            # The least token as an upper bound means the end of the ring.
            if token != MIN_TOKEN:
                high = token if inclusive else token - 1
        return low, high


def _token(value: Bound, run: Run) -> int:
    return int.from_bytes(required(value(run), _VALUE_NAME), "big", signed=True)
