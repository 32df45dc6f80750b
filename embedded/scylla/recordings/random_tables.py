"""Random tables of a recording: three that every recording has, and some with random keys, columns and options of cdc.

In: a random source. Out: `RandomTable`s with what the writes need to know of them, and their CREATE statements.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from connector.values import CqlType, UserType, native, parse_type

ADDRESS: Final = {"addr": [["street", "text"], ["zip", "int"]]}
_USER_TYPES: Final = {"addr": UserType("", "addr", (("street", native("text")), ("zip", native("int"))))}

_NATIVE: Final = (
    *("ascii", "text", "blob", "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "varint"),
    *("decimal", "uuid", "timeuuid", "inet", "timestamp", "date", "time", "duration"),
)
_KEY_TYPES: Final = (
    *("int", "text", "bigint", "smallint", "tinyint", "ascii", "boolean", "varint", "uuid", "timeuuid"),
    *("inet", "timestamp", "date", "time"),
)
_FROZEN: Final = (
    *("frozen<list<int>>", "frozen<set<text>>", "frozen<map<int, text>>", "frozen<tuple<int, text>>"),
    "frozen<addr>",
)
_COLLECTIONS: Final = ("list<text>", "set<int>", "map<text, int>")
_CDC: Final = (
    "{'enabled': true}",
    "{'enabled': true, 'preimage': true}",
    "{'enabled': true, 'preimage': true, 'postimage': true}",
    "{'enabled': true, 'preimage': 'full', 'postimage': true}",
    "{'enabled': true, 'delta': 'keys'}",
    "{'enabled': true, 'postimage': true, 'delta': 'keys'}",
    "{'enabled': true, 'ttl': 3600}",
)


@dataclass(frozen=True)
class RandomTable:
    """`partition`, `clustering`, `static` and `regular`: columns with their types, in the order of the key."""

    name: str
    partition: dict[str, CqlType]
    clustering: dict[str, CqlType]
    static: dict[str, CqlType]
    regular: dict[str, CqlType]
    cdc: str
    descending: list[str] = field(default_factory=list)

    def create(self, keyspace: str) -> str:
        columns = [f"{name} {type_.cql()}" for name, type_ in (self.partition | self.clustering).items()]
        columns += [f"{name} {type_.cql()} static" for name, type_ in self.static.items()]
        columns += [f"{name} {type_.cql()}" for name, type_ in self.regular.items()]
        key = ", ".join([f"({', '.join(self.partition)})", *self.clustering])
        order = ", ".join(f"{name} {'DESC' if name in self.descending else 'ASC'}" for name in self.clustering)
        options = f"CLUSTERING ORDER BY ({order}) AND cdc = {self.cdc}" if order else f"cdc = {self.cdc}"
        return f"CREATE TABLE {keyspace}.{self.name} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH {options}"


def random_tables(source: random.Random, count: int = 6) -> list[RandomTable]:
    """`plain`, `wide`, `types`, and `count` random ones."""
    collections = _typed(l="list<text>", m="map<text, int>", st="set<int>", u="addr", f="frozen<list<int>>")
    plain = RandomTable(
        "plain", _typed(id="int"), {}, {}, _typed(name="text", n="bigint", ok="boolean") | collections, _CDC[0]
    )
    wide = RandomTable(
        "wide",
        _typed(pk="int", region="text"),
        _typed(ck="int", sub="text"),
        _typed(s="text", sn="int"),
        _typed(v="text", w="int", d="double") | collections,
        source.choice(_CDC),
        ["ck"],
    )
    types = RandomTable(
        "types",
        _typed(pk="bigint"),
        _typed(ck="timeuuid"),
        {},
        _typed(**{f"t_{name}": name for name in _NATIVE}),
        source.choice(_CDC),
    )
    return [plain, wide, types, *(_random_table(source, f"r{number}") for number in range(count))]


def _random_table(source: random.Random, name: str) -> RandomTable:
    partition = {f"pk{at}": _parsed(source.choice(_KEY_TYPES)) for at in range(source.choice((1, 1, 1, 2)))}
    clustering = {f"ck{at}": _parsed(source.choice(_KEY_TYPES)) for at in range(source.choice((0, 1, 1, 1, 2)))}
    static: dict[str, CqlType] = {}
    if clustering and source.random() < 0.8:
        static = _typed(s0=source.choice(_NATIVE), s1="text")
    kinds = source.sample(_NATIVE, source.randint(5, len(_NATIVE)))
    kinds += [*source.sample(_FROZEN, 2), "addr", *source.sample(_COLLECTIONS, source.randint(1, 2))]
    # Names in another order than the columns are declared in: servers sort them.
    regular = {f"{source.choice('abmvz')}{at}": _parsed(kind) for at, kind in enumerate(kinds)}
    descending = [column for column in clustering if source.random() < 0.4]
    return RandomTable(name, partition, clustering, static, regular, source.choice(_CDC), descending)


def _typed(**columns: str) -> dict[str, CqlType]:
    return {name: _parsed(text) for name, text in columns.items()}


def _parsed(text: str) -> CqlType:
    return parse_type(text, _USER_TYPES)
