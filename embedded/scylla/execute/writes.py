"""Which plan is for which modification.

In: a modification's tree and its table. Out: a `WritePlan`; run, it gives one mutation per partition, not yet
merged, logged or applied.
"""

from __future__ import annotations

from embedded.scylla.cql.tree import Insert, InsertJson, Modification, Update
from embedded.scylla.execute.insert import compile_insert
from embedded.scylla.execute.json_insert import compile_json_insert
from embedded.scylla.execute.modify import compile_delete, compile_update
from embedded.scylla.execute.terms import Scope
from embedded.scylla.execute.writeplan import WritePlan
from embedded.scylla.schema import Table


def compile_write(statement: Modification, table: Table, scope: Scope) -> WritePlan:
    if isinstance(statement, Insert):
        return compile_insert(statement, table, scope)
    if isinstance(statement, InsertJson):
        return compile_json_insert(statement, table, scope)
    if isinstance(statement, Update):
        return compile_update(statement, table, scope)
    return compile_delete(statement, table, scope)
