"""The syntax tree of CQL: terms, selectors, relations, operations and statements, as the text gives them.

In: made by the parser. Out: taken apart by `embedded.scylla.execute`. Names are as written (quotes removed,
else in lower case); nothing is looked up in a schema yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from embedded.scylla.cql.term_tree import (
    CallTerm as CallTerm,
)
from embedded.scylla.cql.term_tree import (
    Constant as Constant,
)
from embedded.scylla.cql.term_tree import (
    ConstantKind as ConstantKind,
)
from embedded.scylla.cql.term_tree import (
    HintTerm as HintTerm,
)
from embedded.scylla.cql.term_tree import (
    ListTerm as ListTerm,
)
from embedded.scylla.cql.term_tree import (
    MapTerm as MapTerm,
)
from embedded.scylla.cql.term_tree import (
    Marker as Marker,
)
from embedded.scylla.cql.term_tree import (
    Null as Null,
)
from embedded.scylla.cql.term_tree import (
    RawType as RawType,
)
from embedded.scylla.cql.term_tree import (
    SetTerm as SetTerm,
)
from embedded.scylla.cql.term_tree import (
    Term as Term,
)
from embedded.scylla.cql.term_tree import (
    TupleTerm as TupleTerm,
)
from embedded.scylla.cql.term_tree import (
    UserTerm as UserTerm,
)
from embedded.scylla.cql.term_tree import (
    term_text as term_text,
)

# ---- selectors ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnSelector:
    name: str


@dataclass(frozen=True, slots=True)
class CallSelector:
    """`arguments` is None for `count(*)`."""

    name: str
    arguments: tuple[Selector, ...] | None


@dataclass(frozen=True, slots=True)
class CastSelector:
    inner: Selector
    type: RawType


@dataclass(frozen=True, slots=True)
class ElementSelector:
    inner: Selector
    key: Term


@dataclass(frozen=True, slots=True)
class FieldSelector:
    inner: Selector
    field: str


Selector = ColumnSelector | CallSelector | CastSelector | ElementSelector | FieldSelector


@dataclass(frozen=True, slots=True)
class Selected:
    """`text` is how the selector was written: an unaliased column of the result is called by it."""

    selector: Selector
    alias: str | None
    text: str


# ---- relations ---------------------------------------------------------------------------------------------------

Operator = Literal["=", "<", "<=", ">", ">=", "!=", "IN", "CONTAINS", "CONTAINS KEY", "IS NOT", "LIKE", "NOT IN"]


@dataclass(frozen=True, slots=True)
class InList:
    """`IN (…)` with the values written out."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A restriction of one column, or with `key` of one element of it."""

    column: str
    operator: Operator
    value: Term | InList
    key: Term | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class TupleRelation:
    """`(a, b) > (1, 2)`"""

    columns: tuple[str, ...]
    operator: Operator
    value: Term | InList


@dataclass(frozen=True, slots=True)
class TokenRelation:
    """`token(a, b) > value`"""

    columns: tuple[str, ...]
    operator: Operator
    value: Term


AnyRelation = Relation | TupleRelation | TokenRelation

# ---- statements --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A table or type, with its keyspace if one was written."""

    keyspace: str | None
    name: str


PropertyValue = str | Mapping[str, str]
Properties = tuple[tuple[str, PropertyValue], ...]


@dataclass(frozen=True, slots=True)
class CreateKeyspace:
    name: str
    if_not_exists: bool
    properties: Properties


@dataclass(frozen=True, slots=True)
class AlterKeyspace:
    name: str
    properties: Properties


@dataclass(frozen=True, slots=True)
class DropKeyspace:
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class RawColumn:
    name: str
    type: RawType
    static: bool = False
    primary_key: bool = False


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: Name
    if_not_exists: bool
    columns: tuple[RawColumn, ...]
    primary_keys: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    properties: Properties
    clustering_order: tuple[tuple[str, bool], ...] = ()
    compact_storage: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    name: Name
    add: tuple[RawColumn, ...] = ()
    drop: tuple[str, ...] = ()
    drop_timestamp: int | None = None
    rename: tuple[tuple[str, str], ...] = ()
    properties: Properties = ()
    retype: tuple[str, RawType] | None = None


@dataclass(frozen=True, slots=True)
class DropTable:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateType:
    name: Name
    if_not_exists: bool
    fields: tuple[tuple[str, RawType], ...]


@dataclass(frozen=True, slots=True)
class AlterType:
    name: Name
    add: tuple[tuple[str, RawType], ...] = ()
    rename: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DropType:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Use:
    keyspace: str


@dataclass(frozen=True, slots=True)
class Truncate:
    name: Name


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that this server does not do; `what` names it in the error. `login`: ScyllaDB wants a login for it."""

    what: str
    login: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """An index `name` on a table. `columns` is None where they are more than names; `custom` is the class of USING."""

    table: Name
    name: str | None
    if_not_exists: bool
    columns: tuple[str, ...] | None
    custom: str | None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DropIndex:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateView:
    """A view of this table, which is refused with ScyllaDB's own reason where it has one. `star`: of all columns."""

    base: Name
    star: bool


@dataclass(frozen=True, slots=True)
class PruneView:
    """PRUNE MATERIALIZED VIEW, of which this server has none."""

    name: Name


@dataclass(frozen=True, slots=True)
class Attributes:
    """USING … ; `timeout` is accepted and has no effect."""

    timestamp: Term | None = None
    ttl: Term | None = None
    timeout: Term | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """IF …: at most one of the three."""

    exists: bool = False
    not_exists: bool = False
    relations: tuple[Relation, ...] = ()

    def __bool__(self) -> bool:
        return self.exists or self.not_exists or bool(self.relations)


NO_CONDITIONS = Conditions()
NO_ATTRIBUTES = Attributes()


@dataclass(frozen=True, slots=True)
class Insert:
    name: Name
    columns: tuple[str, ...]
    values: tuple[Term, ...]
    conditions: Conditions = NO_CONDITIONS
    attributes: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class InsertJson:
    name: Name
    json: Term
    default_unset: bool = False
    conditions: Conditions = NO_CONDITIONS
    attributes: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = value`, `column = column + value` (operator `+`), `column = value + column` (`prepend`), `column -= v`,
    `column[key] = value`, `column.field = value`."""

    column: str
    operator: Literal["=", "+", "-", "prepend"]
    value: Term
    key: Term | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    name: Name
    assignments: tuple[Assignment, ...]
    where: tuple[AnyRelation, ...]
    conditions: Conditions = NO_CONDITIONS
    attributes: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Deletion:
    """A column, or an element or field of one."""

    column: str
    key: Term | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    name: Name
    deletions: tuple[Deletion, ...]
    where: tuple[AnyRelation, ...]
    conditions: Conditions = NO_CONDITIONS
    attributes: Attributes = NO_ATTRIBUTES


Modification = Insert | InsertJson | Update | Delete


@dataclass(frozen=True, slots=True)
class Batch:
    kind: Literal["logged", "unlogged", "counter"]
    statements: tuple[Modification, ...]
    attributes: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Select:
    """`selected` is empty for `*`. `order` holds (column, descending)."""

    name: Name
    selected: tuple[Selected, ...]
    where: tuple[AnyRelation, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    limit: Term | None = None
    per_partition_limit: Term | None = None
    group_by: tuple[str, ...] = ()
    distinct: bool = False
    json: bool = False
    allow_filtering: bool = False
    bypass_cache: bool = False
    attributes: Attributes = field(default=NO_ATTRIBUTES)


Statement = (
    CreateKeyspace
    | AlterKeyspace
    | DropKeyspace
    | CreateTable
    | AlterTable
    | DropTable
    | CreateType
    | AlterType
    | DropType
    | Use
    | Truncate
    | Refused
    | CreateIndex
    | DropIndex
    | CreateView
    | PruneView
    | Insert
    | InsertJson
    | Update
    | Delete
    | Batch
    | Select
)
