"""Prometheus' query language, as far as our rules and our dashboard use it.

In: the text of a query. Out: its tree, or `ValueError`; and the labels that its result has, where it names metrics and
labels that exist. What the tests do not know is an error, so that no query is taken for good unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

AGGREGATES = ("sum", "min", "max")
RANGED = ("increase", "rate")
#: What a scrape adds to every series.
SCRAPED = frozenset({"instance", "job"})
_TOKEN = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?)(?![a-z])|(?P<word>[A-Za-z_]\w*)|(?P<text>"[^"]*")'
    r"|(?P<span>\[(?:\d+[smhd]|\$__rate_interval)\])|(?P<sign>=~|!=|>=|<=|==|[-+*/(){},=<>]))"
)
_COMPARISONS = (">", "<", "==", "!=", ">=", "<=")


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Selector:
    """``span``: of a range of time, as it is written."""

    name: str
    labels: tuple[str, ...] = ()
    span: str | None = None


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Query, ...]


@dataclass(frozen=True)
class Aggregate:
    how: str
    by: tuple[str, ...]
    inner: Query


@dataclass(frozen=True)
class Binary:
    sign: str
    left: Query
    right: Query


Query = Number | Selector | Call | Aggregate | Binary


def parsed(text: str) -> Query:
    """
    >>> parsed("1 + m")
    Binary(sign='+', left=Number(value=1.0), right=Selector(name='m', labels=(), span=None))
    """
    reader = _Reader(text)
    query = reader.comparison()
    if reader.left:
        raise ValueError(f"{text}: what is {reader.left[0]}?")
    return query


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.left, at = text, list[str](), 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"{text}: what is {text[at : at + 20]}?")
            self.left.append(found[0].strip())
            at = found.end()

    def comparison(self) -> Query:
        return self._binary(_COMPARISONS, lambda: self._binary("+-", lambda: self._binary("*/", self._one)))

    def _binary(self, signs: tuple[str, ...] | str, operand) -> Query:  # type: ignore[no-untyped-def]
        query: Query = operand()
        while self.left and self.left[0] in signs:
            query = Binary(self.left.pop(0), query, operand())
        return query

    def _one(self) -> Query:
        token = self._next()
        if token == "(":
            query = self.comparison()
            self._expect(")")
            return query
        if token[0].isdigit():
            return Number(float(token))
        if not re.match(r"[A-Za-z_]", token):
            raise ValueError(f"{self.text}: what is {token}?")
        if token in AGGREGATES:
            by = self._names() if self._take("by") else ()
            self._expect("(")
            query = self.comparison()
            self._expect(")")
            return Aggregate(token, by, query)
        if self._take("("):
            arguments = () if self._take(")") else self._arguments()
            return Call(token, arguments)
        labels = tuple(self._matchers()) if self._take("{") else ()
        return Selector(token, labels, self._next() if self.left and self.left[0].startswith("[") else None)

    def _arguments(self) -> tuple[Query, ...]:
        found = [self.comparison()]
        while self._take(","):
            found.append(self.comparison())
        self._expect(")")
        return tuple(found)

    def _matchers(self) -> Iterator[str]:
        while not self._take("}"):
            yield self._next()
            if self._next() not in ("=", "=~", "!="):
                raise ValueError(f"{self.text}: a label without a value")
            if not self._next().startswith('"'):
                raise ValueError(f"{self.text}: a value without quotes")
            self._take(",")

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        names = [self._next()]
        while self._take(","):
            names.append(self._next())
        self._expect(")")
        return tuple(names)

    def _next(self) -> str:
        if not self.left:
            raise ValueError(f"{self.text}: it ends too early")
        return self.left.pop(0)

    def _take(self, token: str) -> bool:
        if self.left[:1] != [token]:
            return False
        self.left.pop(0)
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise ValueError(f"{self.text}: {token} is missing before {' '.join(self.left[:3])}")


def labels_of(query: Query, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The labels of what it answers; ``known``: metrics with theirs. ``ValueError`` names what does not exist."""
    match query:
        case Number():
            return frozenset()
        case Selector(name=name, labels=labels):
            if name not in known:
                raise ValueError(f"there is no metric {name}")
            has = known[name] | SCRAPED
            _refuse_unknown(labels, has, name)
            return has
        case Aggregate(by=by, inner=inner):
            _refuse_unknown(by, labels_of(inner, known), str(inner))
            return frozenset(by)
        case Binary(left=left, right=right):
            one, other = labels_of(left, known), labels_of(right, known)
            if one != other and not isinstance(right, Number) and not isinstance(left, Call):
                raise ValueError(f"{sorted(one)} and {sorted(other)} match nothing")
            return one | other
        case Call(name=name, arguments=[inner]) if name in RANGED:
            if not isinstance(inner, Selector) or inner.span is None:
                raise ValueError(f"{name} wants a range of time")
            return labels_of(inner, known)
        case Call(name="histogram_quantile", arguments=[Number(), inner]):
            labels = labels_of(inner, known)
            if "le" not in labels:
                raise ValueError("a quantile of what is no histogram")
            return labels - {"le"}
        case Call(name="absent", arguments=[inner]):
            labels_of(inner, known)
            return frozenset()
        case Call(name="time", arguments=[]):
            return frozenset()
    raise ValueError(f"not known to the tests: {query}")


def _refuse_unknown(names: tuple[str, ...], known: frozenset[str], of: str) -> None:
    missing = {*names} - known
    if missing:
        raise ValueError(f"{of} has no {', '.join(sorted(missing))}")
