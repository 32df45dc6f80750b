"""Random tables with random statements, as CQL text: every type, odd names, every way to write and delete.

In: a source of randomness and a keyspace. Out: a ``RandomTable`` with the statements that make it, write to it and
alter it, and the types of its columns as they are now. It knows nothing of records or of landing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from connector.cql_names import quote_identifier
from connector.values.types import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
    is_multi_cell,
    parse_type,
)
from embedded.scylla.execute.types import uses_type

LITERALS: dict[str, list[str]] = {
    "ascii": ["''", "'a'", "'it''s'", "'~ !'"],
    "bigint": ["0", "-1", "1", "9223372036854775807", "-9223372036854775808"],
    "blob": ["0x", "0x00", "0xff00", "0xcafebabe"],
    "boolean": ["true", "false"],
    "date": ["0", "4294967295", "2147483648", "'1582-10-04'", "'1582-10-15'", "'0001-01-01'", "'2024-02-29'"],
    "decimal": ["0", "0.00", "-1.50", "-1.5", "1.0", "1.00", "1E+10", "-3E-20", "12345678901234567890123456789.123"],
    "double": ["0.0", "-0.0", "1.5", "-1.5", "NaN", "Infinity", "-Infinity", "5e-324", "1.7976931348623157e308", "0.1"],
    "duration": ["1mo2d3ns", "-1y2mo", "12h30m", "0s", "2w", "-5ms3us"],
    "float": ["0.0", "-0.0", "0.1", "-2.5", "NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45"],
    "inet": ["'1.2.3.4'", "'255.0.0.1'", "'::1'", "'2001:db8::1'", "'::ffff:1.2.3.4'"],
    "int": ["0", "-1", "1", "2147483647", "-2147483648"],
    "smallint": ["0", "-1", "32767", "-32768"],
    "text": [
        "''",
        "'a'",
        "'ä'",
        "'it''s \"x\" \\ {}'",
        "'\U0001d11e'",
        "'\uffff'",
        "'a\nb\tc'",
        "'\x00\x1f'",
        "'null'",
    ],
    "time": ["'00:00:00'", "86399999999999", "'12:34:56.789'", "1"],
    "timestamp": ["0", "-1", "1700000000123", "253402300800000", "9223372036854775", "-9223372036854775"],
    "timeuuid": [
        "8d1c5f00-1234-11ee-8080-808080808080",
        "8d1c5f00-1234-11ee-80ff-808080808080",
        "8d1c5f00-1234-11ee-8000-000000000000",
        "00000000-1235-11ee-bf7f-7f7f7f7f7f7f",
        "ffffffff-1233-11ee-8080-808080808080",
    ],
    "tinyint": ["0", "-1", "127", "-128"],
    "uuid": [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-4fff-bfff-ffffffffffff",
        "8d1c5f00-1234-11ee-8080-808080808080",
        "3d1c5f00-1235-11ee-8080-808080808080",
        "123e4567-e89b-42d3-a456-426614174000",
    ],
    "varint": ["0", "-1", "1", "128", "-129", "123456789012345678901234567890"],
}
ODD_NAMES = [
    *("segment", "kind", "bucket", "mark", "topic", "offset", "ts", "note", "value", "key", "op", "e", "p", "base"),
    *("before", "after", "source", "elements", "mode", "deleted", "marker", "ranges", "reason", "partition", "row"),
    *("V", "v", "Ü", "a b", "a.b", "it's", "back`tick", 'quo"te', "日本", "x-y", "select", "_corrupt", "k_p0", "v_v"),
    *("a,b", "a;b", "(a)", "{a}", "a\\b", "$x", "a:b", "<a>", "%", "A", "a"),
]
PLAIN_NAMES = [name for name in ODD_NAMES if name.isascii() and name.isidentifier()]
BECOME = {
    "ascii": ["text", "blob"],
    "bigint": ["varint", "blob"],
    "date": ["blob"],
    "int": ["varint", "blob"],
    "smallint": ["varint"],
    "text": ["blob"],
    "timeuuid": ["uuid"],
    "timestamp": ["blob"],
}
"""What columns of a type can be altered to."""
KEYABLE = [name for name in LITERALS if name != "duration"]
STEP_US = 20


def random_type(rnd: random.Random, user_types: dict[str, UserType], depth: int, key: bool = False) -> str:
    """A type's spelling as it stands inside of another type; ``key`` where the server wants to sort it."""
    natives = KEYABLE if key else list(LITERALS)
    if depth <= 0 or rnd.random() < 0.45:
        return rnd.choice(natives)
    what = rnd.choice(["list", "set", "map", "tuple", "udt", "udt", "vector"])
    if what == "list":
        return f"frozen<list<{random_type(rnd, user_types, depth - 1, key)}>>"
    if what == "set":
        return f"frozen<set<{random_type(rnd, user_types, depth - 1, True)}>>"
    if what == "map":
        value = random_type(rnd, user_types, depth - 1, key)
        return f"frozen<map<{random_type(rnd, user_types, depth - 1, True)}, {value}>>"
    if what == "tuple":
        parts = [random_type(rnd, user_types, depth - 1, key) for _ in range(rnd.randint(1, 3))]
        return f"frozen<tuple<{', '.join(parts)}>>"
    if what == "vector" and not key:
        return f"vector<{rnd.choice(['float', 'int', 'text', 'double'])}, {rnd.randint(1, 3)}>"
    found = [name for name, kind in user_types.items() if not key or _sortable(kind)]
    return f"frozen<{quote_identifier(rnd.choice(found))}>" if found else rnd.choice(natives)


def _sortable(type_: CqlType) -> bool:
    if isinstance(type_, NativeType):
        return type_.name != "duration"
    if isinstance(type_, VectorType):
        return False
    if isinstance(type_, ListType | SetType):
        return _sortable(type_.element)
    if isinstance(type_, MapType):
        return _sortable(type_.key) and _sortable(type_.value)
    if isinstance(type_, TupleType):
        return all(map(_sortable, type_.elements))
    assert isinstance(type_, UserType)
    return all(_sortable(kind) for _, kind in type_.fields)


def top_type(rnd: random.Random, user_types: dict[str, UserType]) -> str:
    """The type of a column that is no key: half of them atomic, the rest collections and user types of any kind."""
    if rnd.random() < 0.45:
        return random_type(rnd, user_types, 0)
    if rnd.random() < 0.3:
        return random_type(rnd, user_types, 3)
    what = rnd.choice(["list", "set", "map", "udt"])
    if what == "list":
        return f"list<{random_type(rnd, user_types, rnd.randint(0, 2))}>"
    if what == "set":
        return f"set<{random_type(rnd, user_types, rnd.randint(0, 2), True)}>"
    if what == "map":
        key, value = random_type(rnd, user_types, rnd.randint(0, 2), True), random_type(rnd, user_types, 1)
        return f"map<{key}, {value}>"
    return quote_identifier(rnd.choice(list(user_types)))


def literal(rnd: random.Random, type_: CqlType, few: int = 99) -> str:
    """A value as CQL text; ``few`` narrows natives to their first literals."""
    if isinstance(type_, NativeType):
        return rnd.choice(LITERALS[type_.name][:few])
    if isinstance(type_, ListType | SetType):
        items = [literal(rnd, type_.element) for _ in range(rnd.randrange(4))]
        opened, closed = ("[", "]") if isinstance(type_, ListType) else ("{", "}")
        return opened + ", ".join(items if isinstance(type_, ListType) else dict.fromkeys(items)) + closed
    if isinstance(type_, VectorType):
        return "[" + ", ".join(literal(rnd, type_.element) for _ in range(type_.dimensions)) + "]"
    if isinstance(type_, MapType):
        keys = dict.fromkeys(literal(rnd, type_.key) for _ in range(rnd.randrange(4)))
        return "{" + ", ".join(f"{key}: {literal(rnd, type_.value)}" for key in keys) + "}"
    if isinstance(type_, TupleType):
        return "(" + ", ".join(_maybe_null(rnd, part) for part in type_.elements) + ")"
    assert isinstance(type_, UserType)
    given = [(name, kind) for name, kind in type_.fields if rnd.random() < 0.8] or [type_.fields[0]]
    return "{" + ", ".join(f"{quote_identifier(name)}: {_maybe_null(rnd, kind)}" for name, kind in given) + "}"


def _maybe_null(rnd: random.Random, type_: CqlType) -> str:
    return "null" if rnd.random() < 0.25 else literal(rnd, type_)


@dataclass
class RandomTable:
    """A table as it is now. Columns are (name, spelling); ``clustering`` has the direction as well."""

    rnd: random.Random
    keyspace: str
    name: str
    types: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    partition: list[tuple[str, str]] = field(default_factory=list)
    clustering: list[tuple[str, str, bool]] = field(default_factory=list)
    statics: list[tuple[str, str]] = field(default_factory=list)
    regulars: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    images: bool = False
    plain: bool = False
    timed: bool = True
    ttls: tuple[int, ...] = ()
    """Those of every other write that can have one; 0 removes it."""
    snapshotted: bool = False
    """Nothing that a SELECT does not tell: lists have no elements, and whatever is updated is inserted as well."""
    names: list[str] = field(default_factory=lambda: ODD_NAMES)
    keys: dict[str, list[str]] = field(default_factory=dict)

    @property
    def full(self) -> str:
        return f"{quote_identifier(self.keyspace)}.{quote_identifier(self.name)}"

    def user_types(self) -> dict[str, UserType]:
        known: dict[str, UserType] = {}
        for name, fields in self.types.items():
            known[name] = UserType(self.keyspace, name, tuple((part, parse_type(text, known)) for part, text in fields))
        return known

    def type_of(self, spelled: str) -> CqlType:
        return parse_type(spelled, self.user_types())

    def columns(self) -> dict[str, CqlType]:
        """All columns of the table with their types."""
        named = [*self.partition, *((name, text) for name, text, _ in self.clustering), *self.statics, *self.regulars]
        return {name: self.type_of(text) for name, text in named}

    # -- making ----------------------------------------------------------------------------------------------

    def invent(self) -> list[str]:
        """A new table; gives the statements that create it."""
        rnd = self.rnd
        names = rnd.sample(self.names, 24)
        made: list[str] = []
        if not self.types:
            for index in range(2):
                fields = [(names.pop(), random_type(rnd, self.user_types(), 1, key=index == 0)) for _ in range(3)]
                self.types[f"udt{index}_{self.name.lower()}"] = fields
                described = ", ".join(f"{quote_identifier(part)} {text}" for part, text in fields)
                udt = f"{quote_identifier(self.keyspace)}.udt{index}_{self.name.lower()}"
                made.append(f"CREATE TYPE {udt} ({described})")
        kinds = self.user_types()
        key_depth = 0 if self.plain or rnd.random() < 0.7 else 1
        self.partition = [(names.pop(), random_type(rnd, kinds, key_depth, True)) for _ in range(rnd.choice([1, 1, 2]))]
        self.clustering = [
            (names.pop(), random_type(rnd, kinds, key_depth, True), rnd.random() < 0.4)
            for _ in range(rnd.choice([0, 1, 1, 2, 3]))
        ]
        statics = rnd.choice([0, 1, 2]) if self.clustering else 0
        self.statics = [(names.pop(), self._any_type(kinds)) for _ in range(statics)]
        self.regulars = [(names.pop(), self._any_type(kinds)) for _ in range(rnd.choice([0, 2, 4, 6]))]
        self.dropped = []
        for name, text in [*self.partition, *((name, text) for name, text, _ in self.clustering)]:
            made_of = self.type_of(text)
            self.keys[name] = list(dict.fromkeys(literal(rnd, made_of) for _ in range(4)))
        columns = [f"{quote_identifier(name)} {text}" for name, text in [*self.partition, *self.regulars]]
        columns += [f"{quote_identifier(name)} {text}" for name, text, _ in self.clustering]
        columns += [f"{quote_identifier(name)} {text} static" for name, text in self.statics]
        partition = ", ".join(quote_identifier(name) for name, _ in self.partition)
        clustering = "".join(f", {quote_identifier(name)}" for name, _, _ in self.clustering)
        order = ", ".join(f"{quote_identifier(name)} {'DESC' if desc else 'ASC'}" for name, _, desc in self.clustering)
        options = f"CLUSTERING ORDER BY ({order}) AND " if order else ""
        cdc = "{'enabled': true, 'postimage': true}" if self.images else "{'enabled': true}"
        made.append(
            f"CREATE TABLE {self.full} ({', '.join(columns)}, PRIMARY KEY (({partition}){clustering})) "
            f"WITH {options}cdc = {cdc}"
        )
        return made

    def _any_type(self, kinds: dict[str, UserType]) -> str:
        while True:
            text = random_type(self.rnd, kinds, 0) if self.plain else top_type(self.rnd, kinds)
            if not (self.snapshotted and text.startswith("list<")):
                return text

    def _alterable(self) -> list[str]:
        """The types that the server alters: it refuses those that a column of the partition key is made of."""
        keyed = [self.type_of(text) for _, text in self.partition]
        return [name for name, kind in self.user_types().items() if not any(uses_type(key, kind) for key in keyed)]

    def alteration(self, what: str = "") -> list[str]:
        """Another shape for the table or one of its types."""
        rnd = self.rnd
        what = what or rnd.choice(["add", "add", "drop", "again", "field", "recreate", "rename"])
        if what == "add":
            name = rnd.choice([n for n in self.names if n not in self.columns() and n not in dict(self.dropped)])
            static = bool(self.clustering) and rnd.random() < 0.3
            text = self._any_type(self.user_types())
            (self.statics if static else self.regulars).append((name, text))
            return [f"ALTER TABLE {self.full} ADD {quote_identifier(name)} {text}{' static' if static else ''}"]
        if what == "drop" and self.regulars:
            gone = rnd.choice(self.regulars)
            self.regulars.remove(gone)
            self.dropped.append(gone)
            return [f"ALTER TABLE {self.full} DROP {quote_identifier(gone[0])}"]
        if what == "retype" and (found := [at for at, (_, text) in enumerate(self.regulars) if text in BECOME]):
            at = rnd.choice(found)
            name, text = self.regulars[at]
            self.regulars[at] = (name, rnd.choice(BECOME[text]))
            return [f"ALTER TABLE {self.full} ALTER {quote_identifier(name)} TYPE {self.regulars[at][1]}"]
        if what == "rename field" and (alterable := self._alterable()):
            udt = rnd.choice(alterable)
            at = rnd.randrange(len(self.types[udt]))
            part, text = self.types[udt][at]
            new = f"f{rnd.randrange(1000)}"
            self.types[udt][at] = (new, text)
            full = f"{quote_identifier(self.keyspace)}.{quote_identifier(udt)}"
            return [f"ALTER TYPE {full} RENAME {quote_identifier(part)} TO {new}"]
        if what == "swap" and len(self.clustering) > 1:
            (one, *first), (other, *second) = self.clustering[:2]
            self.clustering[:2] = [(other, first[0], first[1]), (one, second[0], second[1])]
            self.keys[one], self.keys[other] = self.keys[other], self.keys[one]
            names = [(one, "between"), (other, one), ("between", other)]
            spelled = [(quote_identifier(was), quote_identifier(becomes)) for was, becomes in names]
            return [f"ALTER TABLE {self.full} RENAME {was} TO {becomes}" for was, becomes in spelled]
        if what in ("again", "again as another") and self.dropped:
            name, text = self.dropped.pop()
            text = text if what == "again" else self._any_type(self.user_types())
            self.regulars.append((name, text))
            return [f"ALTER TABLE {self.full} ADD {quote_identifier(name)} {text}"]
        if what == "field" and (alterable := self._alterable()):
            udt = rnd.choice(alterable)
            part, text = f"f{len(self.types[udt])}", random_type(rnd, {}, 0, True)
            self.types[udt].append((part, text))
            return [f"ALTER TYPE {quote_identifier(self.keyspace)}.{quote_identifier(udt)} ADD {part} {text}"]
        if what == "recreate":
            return [f"DROP TABLE {self.full}", *self.invent()]
        if what == "rename" and self.clustering:
            old, text, desc = self.clustering[0]
            new = f"renamed{rnd.randrange(1000)}"
            self.clustering[0] = (new, text, desc)
            self.keys[new] = self.keys[old]
            return [f"ALTER TABLE {self.full} RENAME {quote_identifier(old)} TO {quote_identifier(new)}"]
        return []

    # -- writing ---------------------------------------------------------------------------------------------

    def statement(self, now_us: int) -> str:
        """One write: a statement of its own, conditional, or a batch of several."""
        rnd = self.rnd
        draw = rnd.random()
        if draw < 0.08:
            kind = rnd.choice(["", "UNLOGGED "])
            inner = [text for _ in range(rnd.randint(2, 4)) for text in self._write(now_us, using=False)]
            return f"BEGIN {kind}BATCH{self._using(now_us)} {'; '.join(inner)}; APPLY BATCH"
        if draw < 0.13:
            where = self._where(self.clustering)
            condition = rnd.choice(["IF EXISTS", "IF NOT EXISTS"])
            if condition == "IF NOT EXISTS":
                return self._insert(f" IF NOT EXISTS{self._ending('')}")
            return f"DELETE FROM {self.full} WHERE {where} IF EXISTS"
        written = self._write(now_us, using=True)
        return written[0] if len(written) == 1 else f"BEGIN BATCH {'; '.join(written)}; APPLY BATCH"

    def _using(self, now_us: int) -> str:
        """Few times, so that many are equal."""
        if not self.timed or self.rnd.random() < 0.4:
            return ""
        return f" USING TIMESTAMP {now_us // STEP_US * STEP_US + self.rnd.randrange(-3, 4)}"

    def _ending(self, times: str) -> str:
        """With a TTL, or not."""
        if not self.ttls or self.rnd.random() < 0.5:
            return times
        return f"{times} AND TTL {self._ttl()}" if times else f" USING TTL {self._ttl()}"

    def _ttl(self) -> int:
        return self.rnd.choice(self.ttls)

    def _write(self, now_us: int, using: bool) -> list[str]:
        rnd = self.rnd
        times = self._using(now_us) if using else ""
        draw = rnd.random()
        settable = [*self.regulars, *self.statics]
        if draw < 0.3 or (not settable and draw < 0.6):
            return [self._insert(self._ending(times))]
        if draw < 0.7 and settable:
            return self._update(times)
        if draw < 0.78 and settable:
            return [self._delete_cells(times)]
        if draw < 0.88 or not self.clustering:
            return [f"DELETE FROM {self.full}{times} WHERE {self._where(self.clustering)}"]
        if draw < 0.92:
            return [f"DELETE FROM {self.full}{times} WHERE {self._where([])}"]
        return [f"DELETE FROM {self.full}{times} WHERE {self._range()}"]

    def _insert(self, times: str) -> str:
        rnd = self.rnd
        columns = [(name, rnd.choice(self.keys[name])) for name, _ in self.partition]
        if self.statics and rnd.random() < 0.15:
            chosen = [rnd.choice(self.statics)]
        else:
            columns += [(name, rnd.choice(self.keys[name])) for name, _, _ in self.clustering]
            chosen = [each for each in [*self.regulars, *self.statics] if rnd.random() < 0.5]
        columns += [(name, _maybe_null(rnd, self.type_of(text))) for name, text in chosen]
        return self._inserted(columns) + times

    def _inserted(self, columns: list[tuple[str, str]]) -> str:
        names, values = (", ".join(part) for part in zip(*((quote_identifier(n), v) for n, v in columns)))
        return f"INSERT INTO {self.full} ({names}) VALUES ({values})"

    def _update(self, times: str) -> list[str]:
        rnd = self.rnd
        static = bool(self.statics) and rnd.random() < 0.25
        pool = self.statics if static else self.regulars or self.statics
        static = pool is self.statics
        chosen = rnd.sample(pool, min(len(pool), rnd.randint(1, 3)))
        made = ", ".join(self._assignment(quote_identifier(name), self.type_of(text)) for name, text in chosen)
        row = self._row([] if static else self.clustering)
        text = f"UPDATE {self.full}{self._ending(times)} SET {made} WHERE {_conditions(row)}"
        return [self._inserted(row) + times, text] if self.snapshotted and not static else [text]

    def _assignment(self, name: str, type_: CqlType) -> str:
        rnd = self.rnd
        if not is_multi_cell(type_) or rnd.random() < 0.35:
            return f"{name} = {_maybe_null(rnd, type_)}"
        if isinstance(type_, UserType):
            part, kind = rnd.choice(type_.fields)
            return f"{name}.{quote_identifier(part)} = {_maybe_null(rnd, kind)}"
        if isinstance(type_, ListType):
            one = "[" + literal(rnd, type_.element) + "]"
            return rnd.choice(
                [
                    f"{name} = {name} + {one}",
                    f"{name} = {one} + {name}",
                    f"{name} = {name} - {one}",
                    f"{name}[0] = {one[1:-1]}",
                ]
            )
        if isinstance(type_, MapType):
            key = literal(rnd, type_.key)
            return rnd.choice(
                [
                    f"{name}[{key}] = {_maybe_null(rnd, type_.value)}",
                    f"{name} = {name} + {{{key}: {literal(rnd, type_.value)}}}",
                    f"{name} = {name} - {{{key}}}",
                ]
            )
        assert isinstance(type_, SetType)
        return f"{name} = {name} {rnd.choice('+-')} {{{literal(rnd, type_.element)}}}"

    def _delete_cells(self, times: str) -> str:
        rnd = self.rnd
        static = not self.regulars or (bool(self.statics) and rnd.random() < 0.3)
        name, text = rnd.choice(self.statics if static else self.regulars)
        target, type_ = quote_identifier(name), self.type_of(text)
        if is_multi_cell(type_) and rnd.random() < 0.5:
            if isinstance(type_, MapType):
                target += f"[{literal(rnd, type_.key)}]"
            elif isinstance(type_, SetType):
                target += f"[{literal(rnd, type_.element)}]"
            elif isinstance(type_, ListType):
                target += "[0]"
            elif isinstance(type_, UserType):
                target += f".{quote_identifier(rnd.choice(type_.fields)[0])}"
        return f"DELETE {target} FROM {self.full}{times} WHERE {self._where([] if static else self.clustering)}"

    def _row(self, clustering: list[tuple[str, str, bool]]) -> list[tuple[str, str]]:
        names = [*(name for name, _ in self.partition), *(name for name, _, _ in clustering)]
        return [(name, self.rnd.choice(self.keys[name])) for name in names]

    def _where(self, clustering: list[tuple[str, str, bool]]) -> str:
        return _conditions(self._row(clustering))

    def _range(self) -> str:
        rnd = self.rnd
        if len(self.clustering) > 1 and rnd.random() < 0.3 and len({desc for _, _, desc in self.clustering}) == 1:
            names = ", ".join(quote_identifier(name) for name, _, _ in self.clustering)
            values = ", ".join(rnd.choice(self.keys[name]) for name, _, _ in self.clustering)
            return f"{self._where([])} AND ({names}) {rnd.choice(['<', '<=', '>', '>='])} ({values})"
        place = rnd.randrange(len(self.clustering))
        conditions = [self._where(self.clustering[:place])]
        name = self.clustering[place][0]
        if place and rnd.random() < 0.3:
            return conditions[0]
        if rnd.random() < 0.7:
            conditions.append(f"{quote_identifier(name)} {rnd.choice(['>', '>='])} {rnd.choice(self.keys[name])}")
        if len(conditions) == 1 or rnd.random() < 0.5:
            conditions.append(f"{quote_identifier(name)} {rnd.choice(['<', '<='])} {rnd.choice(self.keys[name])}")
        return " AND ".join(conditions)


def _conditions(row: list[tuple[str, str]]) -> str:
    return " AND ".join(f"{quote_identifier(name)} = {value}" for name, value in row)
