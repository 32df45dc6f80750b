"""WHERE clauses: which partitions, which rows of them, and what is left to filter.

In: relations and their table. Out: `Restrictions`, compiled once; per execution they give partition keys, a
token range and clustering slices in storage order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, cast

from embedded.scylla.cql.tree import AnyRelation, InList, Relation, TokenRelation, TupleRelation
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.candidates import Restriction, Tuples, combinations, row_key
from embedded.scylla.execute.filters import Filter, compile_filter, relation_text
from embedded.scylla.execute.relation_values import compile_candidates, compile_values
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.slices import Edge, bounded_slices, in_storage_order
from embedded.scylla.execute.terms import Scope
from embedded.scylla.execute.token_bounds import TokenBounds
from embedded.scylla.mutation import FULL_SLICE, Slice
from embedded.scylla.schema import Column, Table, partition_key_bytes

#: What no key can be looked up by.
_FILTERED = frozenset(("CONTAINS", "CONTAINS KEY", "LIKE", "NOT IN"))
FILTERING_NEEDED = (
    "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. "
    "If you want to execute this query despite the performance unpredictability, use ALLOW FILTERING"
)


class Restrictions:
    """The compiled WHERE clause. `key_values` gives the candidates per partition key column, None unless all are
    restricted; `clustering` says whether clustering columns are restricted at all, `full` whether to single rows."""

    def __init__(
        self,
        table: Table,
        relations: Sequence[AnyRelation],
        scope: Scope,
        filtering: bool,
        select: bool = False,
    ) -> None:
        self.table = table
        self._select = select
        self.scope = scope
        self.filters: list[Filter] = []
        self.filters_used = False
        self._tokens = TokenBounds()
        self._together: bool | None = None
        by_column: dict[str, Restriction] = {}
        others: list[Relation] = []
        for relation in relations:
            if isinstance(relation, TokenRelation):
                self._tokens.add(relation, table, scope)
                continue
            columns = self._columns(relation)
            if isinstance(relation, Relation) and (
                columns[0].kind in ("static", "regular")
                or relation.key is not None
                or relation.field is not None
                or relation.operator in _FILTERED
            ):
                others.append(relation)
                continue
            self._add(by_column, columns, relation)
        self._partition(by_column, filtering)
        self._clustering(by_column, filtering)
        for other in others:
            if other.operator in ("IS NOT", "!="):
                raise InvalidRequest(f'Unsupported "{other.operator}" relation: {relation_text(other)}')
            self._filter(other, filtering or self._needs_no_leave(other))

    # ---- taking the relations in -------------------------------------------------------------------------------

    def _column(self, name: str) -> Column:
        column = self.table.by_name.get(name)
        if column is None:
            raise InvalidRequest(f"Unrecognized name {name}")
        return column

    def _columns(self, relation: Relation | TupleRelation) -> tuple[Column, ...]:
        if isinstance(relation, Relation):
            return (self._column(relation.column),)
        columns = tuple(self._column(name) for name in relation.columns)
        ordered = "in the PRIMARY KEY order"
        for at, column in enumerate(columns):
            if column.kind != "clustering":
                raise InvalidRequest(
                    "Multi-column relations can only be applied to clustering columns but was applied to: "
                    f"{column.name}"
                )
            if column.position != at:
                if at == 0:
                    raise InvalidRequest(
                        f"Clustering columns may not be skipped in multi-column relations. They should appear {ordered}"
                    )
                raise InvalidRequest(f"Clustering columns must appear {ordered} in multi-column relations")
        return columns

    def _add(
        self, by_column: dict[str, Restriction], columns: tuple[Column, ...], relation: Relation | TupleRelation
    ) -> None:
        operator = relation.operator
        present = by_column.get(columns[0].name)
        shown = columns[0].name
        if operator in ("!=", "IS NOT"):
            raise InvalidRequest(f'Unsupported "{operator}" relation: {relation_text(relation)}')
        if operator in _FILTERED:
            raise InvalidRequest(f"{operator} cannot be used for Multi-column relations")
        if columns[0].kind == "clustering":
            together = isinstance(relation, TupleRelation)
            if self._together not in (None, together):
                raise InvalidRequest(
                    "Mixing single column relations and multi column relations on clustering columns is not allowed"
                )
            self._together = together
        if present is not None and self._intersect(present, columns, relation):
            if operator not in ("=", "IN") or present.values is not None:
                return
            present = None
            del by_column[shown]
        if present is not None and (operator in ("=", "IN") or present.values is not None):
            what = "a IN" if operator == "IN" else "an Equal"
            raise InvalidRequest(f"{shown} cannot be restricted by more than one relation if it includes {what}")
        restriction = present or Restriction(columns)
        restriction.relations.append(relation)
        for column in columns:
            by_column[column.name] = restriction
        if operator == "=":
            value = compile_values(relation.value, columns, isinstance(relation, TupleRelation), self.scope)
            restriction.values = lambda run: [value(run)]
        elif operator == "IN":
            restriction.values = compile_candidates(relation, columns, self.scope)
            restriction.single = isinstance(relation.value, InList) and len(relation.value.items) == 1
        else:
            value = compile_values(relation.value, columns, isinstance(relation, TupleRelation), self.scope)
            edge = (columns, value, operator in (">=", "<="))
            if len(columns) > len(restriction.columns):
                restriction.columns = columns
            place = "start" if operator.startswith(">") else "end"
            if (restriction.lower if place == "start" else restriction.upper) is not None:
                raise InvalidRequest(f"More than one restriction was found for the {place} bound on {shown}")
            if place == "start":
                restriction.lower = edge
            else:
                restriction.upper = edge

    def _intersect(self, present: Restriction, columns: tuple[Column, ...], relation: Relation | TupleRelation) -> bool:
        """A column that is restricted again: one relation finds the rows, of which the others leave some."""
        both = [*present.relations, relation]
        if not self._select or len(columns) != 1 or not all(isinstance(each, Relation) for each in both):
            return False
        candidates = relation.operator in ("=", "IN") or present.values is not None
        sides = {each.operator[0] for each in both}
        if not candidates and len(both) == 2 and len(sides) == 2:
            return False
        exact = relation.operator in ("=", "IN") and present.values is None
        others = present.relations if exact else [relation]
        self.filters += [compile_filter(each, self.table, self.scope) for each in others]
        self.filters_used = True
        return True

    def _needs_no_leave(self, relation: Relation) -> bool:
        """ScyllaDB filters the next clustering column behind the restricted ones without being told to."""
        column = self.table.by_name[relation.column]
        if column.kind != "clustering" or relation.key is not None or not self._select:
            return False
        if relation.operator.startswith("CONTAINS"):
            raise InvalidRequest(
                "Cannot restrict clustering columns by a CONTAINS relation without a secondary index or filtering"
            )
        return self.key_values is not None and column.position <= self.prefix_columns

    def _filter(self, relation: AnyRelation, filtering: bool) -> None:
        compiled = compile_filter(relation, self.table, self.scope)
        if not filtering:
            self._refuse()
        self.filters_used = True
        self.filters.append(compiled)

    def _refuse(self) -> NoReturn:
        raise InvalidRequest(FILTERING_NEEDED)

    # ---- the partition key -------------------------------------------------------------------------------------

    def _partition(self, by_column: dict[str, Restriction], filtering: bool) -> None:
        columns = self.table.partition_key
        found = [by_column.get(column.name) for column in columns]
        present = [restriction for restriction in found if restriction is not None]
        if present and self._tokens.restricted:
            names = ", ".join(column.name for column in columns)
            raise InvalidRequest(
                f'Columns "{names}" cannot be restricted by both a normal relation and a token relation'
            )
        self.key_values: list[Tuples] | None = None
        self.single_partition = False
        if len(present) == len(columns) and all(restriction.values for restriction in present):
            self.key_values = [cast(Tuples, restriction.values) for restriction in present]
            self.single_partition = all(restriction.single for restriction in present)
            return
        for restriction in present:
            if restriction.values is None and not filtering:
                raise InvalidRequest(
                    "Only EQ and IN relation are supported on the partition key "
                    "(unless you use the token() function or ALLOW FILTERING)"
                )
        for restriction in present:
            for relation in restriction.relations:
                self._filter(relation, filtering)

    def partition_keys(self, run: Run) -> list[bytes]:
        """The serialised keys, by value, each once. Only if `key_values` is there."""
        assert self.key_values is not None
        keys = []
        single = len(self.key_values) == 1
        for parts in combinations(self.key_values, run, "partition"):
            values = tuple(part[0] for part in parts)
            if single and not values[0]:
                raise InvalidRequest("Key may not be empty")
            key = partition_key_bytes(values)
            if len(key) > 65535:
                raise InvalidRequest(f"Key length of {len(key)} is longer than maximum of 65535")
            keys.append(key)
        return keys

    def token_range(self, run: Run) -> tuple[int, int]:
        """The tokens that may be read, both inclusive; everything without a token relation."""
        return self._tokens.range(run)

    # ---- the clustering key ------------------------------------------------------------------------------------

    def _clustering(self, by_column: dict[str, Restriction], filtering: bool) -> None:
        columns = self.table.clustering
        self._prefix: list[Tuples] = []
        self._last: Restriction | None = None
        self.single_row = True
        self.fixed_columns = 0
        at = 0
        while at < len(columns):
            restriction = by_column.get(columns[at].name)
            if restriction is None or restriction.columns[0] is not columns[at]:
                break
            consecutive = restriction.columns == columns[at : at + len(restriction.columns)]
            if not consecutive:
                break
            at += len(restriction.columns)
            if restriction.values is None:
                self._last = restriction
                break
            self._prefix.append(restriction.values)
            self.single_row = self.single_row and restriction.single
            self.fixed_columns = at if self.single_row else self.fixed_columns
        self.full = at == len(columns) and self._last is None
        self.ends_in_slice = self._last is not None
        self.single_row = self.single_row and self.full
        self.clustering = any(column.name in by_column for column in columns)
        self.prefix_columns = at
        seen: set[int] = set()
        for column in columns[at:]:
            restriction = by_column.get(column.name)
            if restriction is None or id(restriction) in seen:
                continue
            seen.add(id(restriction))
            if not filtering:
                before = columns[column.position - 1].name
                if self._last is not None:
                    raise InvalidRequest(
                        f'Clustering column "{column.name}" cannot be restricted (preceding column '
                        f'"{self._last.columns[-1].name}" is restricted by a non-EQ relation)'
                    )
                unrestricted = columns[at].name if columns[at] is not column else before
                raise InvalidRequest(
                    f'PRIMARY KEY column "{column.name}" cannot be restricted as preceding column '
                    f'"{unrestricted}" is not restricted'
                )
            for relation in restriction.relations:
                self._filter(relation, filtering)

    def clustering_keys(self, run: Run) -> list[tuple[bytes, ...]]:
        """The full keys of the rows, in storage order. Only if `full`."""
        keys = [
            row_key([raw for part in parts for raw in part], self.table)
            for parts in combinations(self._prefix, run, "clustering")
        ]
        return sorted(keys, key=self.table.sort_key) if len(keys) > 1 else keys

    @property
    def only_first_column(self) -> bool:
        """Whether the clustering key is restricted by inequalities of an ascending first column, or not at all."""
        if self._prefix or self.table.clustering[0].order == "desc":
            return False
        return self._last is None or self._last.columns == (self.table.clustering[0],)

    def first_column_edges(self, run: Run) -> tuple[tuple[bytes | None, bool], tuple[bytes | None, bool]]:
        """The lower and upper edge, None for an open one. Only if `only_first_column`."""
        last = self._last
        lower = upper = None
        if last is not None:
            lower, upper = last.lower, last.upper
        return (
            (lower[1](run)[0], lower[2]) if lower else (None, True),
            (upper[1](run)[0], upper[2]) if upper else (None, True),
        )

    def slices(self, run: Run) -> list[Slice]:
        """The slices of the clustering restrictions: none empty, in storage order, not overlapping."""
        if not self._prefix and self._last is None:
            return [FULL_SLICE]
        last = self._last
        edges: tuple[Edge | None, Edge | None] = (None, None)
        if last is not None:
            lower = (last.lower[0], last.lower[1](run), last.lower[2]) if last.lower else None
            upper = (last.upper[0], last.upper[1](run), last.upper[2]) if last.upper else None
            edges = (lower, upper)
        found: list[Slice] = []
        for parts in combinations(self._prefix, run, "clustering"):
            prefix = tuple(raw for part in parts for raw in part)
            found += bounded_slices(self.table, prefix, *edges)
        return in_storage_order(found, self.table)
