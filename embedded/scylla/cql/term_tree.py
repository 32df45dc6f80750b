"""The syntax tree of types and terms, and how error messages show a term.

In: made by the parser. Out: compiled by `embedded.scylla.execute.terms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# ---- types -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RawType:
    """A type as written: `name` is a native, collection or user type; `dimensions` belongs to vector."""

    name: str
    parameters: tuple[RawType, ...] = ()
    keyspace: str | None = None
    dimensions: int = 0
    quoted: bool = False


# ---- terms -------------------------------------------------------------------------------------------------------

ConstantKind = Literal["string", "integer", "float", "boolean", "uuid", "hex", "duration"]


@dataclass(frozen=True, slots=True)
class Constant:
    kind: ConstantKind
    text: str


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Marker:
    index: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ListTerm:
    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class SetTerm:
    """Also `{}`, which may be an empty map."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class MapTerm:
    pairs: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class UserTerm:
    fields: tuple[tuple[str, Term], ...]


@dataclass(frozen=True, slots=True)
class TupleTerm:
    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class CallTerm:
    name: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class HintTerm:
    """`(type) term`"""

    type: RawType
    term: Term


Term = Constant | Null | Marker | ListTerm | SetTerm | MapTerm | UserTerm | TupleTerm | CallTerm | HintTerm


def term_text(term: Term) -> str:
    """A term as an error message shows it."""
    if isinstance(term, Constant):
        return f"'{term.text}'" if term.kind == "string" else term.text
    if isinstance(term, ListTerm):
        return f"[{', '.join(map(term_text, term.items))}]"
    if isinstance(term, SetTerm):
        return f"{{{', '.join(map(term_text, term.items))}}}"
    if isinstance(term, MapTerm):
        return f"{{{', '.join(f'{term_text(key)}:{term_text(value)}' for key, value in term.pairs)}}}"
    if isinstance(term, UserTerm):
        return f"{{{', '.join(f'{name}: {term_text(value)}' for name, value in term.fields)}}}"
    if isinstance(term, TupleTerm):
        return f"({', '.join(map(term_text, term.items))})"
    if isinstance(term, CallTerm):
        return f"{term.name}({', '.join(map(term_text, term.arguments))})"
    if isinstance(term, HintTerm):
        return f"({term.type.name}){term_text(term.term)}"
    return "null" if isinstance(term, Null) else "?"
