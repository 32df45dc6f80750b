"""Random histories of writes: whatever their order, what SELECT shows is what the model of all writes shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from connector.values.binary import encode
from connector.values.types import native
from tests.embedded.scylla.cell_model import CellModel, Deletion, Write
from tests.embedded.scylla.cql_session import START_US, CqlSession

INT = native("int")
TABLE = (
    "CREATE TABLE t (pk int, ck int, s int static, m map<text, int>, l list<int>, v int, w int, PRIMARY KEY (pk, ck))"
)
NOW = START_US // 1_000_000
small = st.integers(-2, 2)
nullable = st.none() | small
keys = st.integers(0, 1)
clusterings = st.integers(0, 3)
timestamps = st.integers(1000, 1004)
ttls = st.sampled_from([0, 0, 0, 5, 10])
maps = st.none() | st.dictionaries(st.sampled_from("abc"), small, max_size=2)


@dataclass(frozen=True)
class Insert:
    pk: int
    ck: int
    values: dict[str, Any]
    timestamp: int
    ttl: int


@dataclass(frozen=True)
class Update:
    pk: int
    ck: int
    values: dict[str, Any]
    put: dict[str, int | None]
    append: list[int]
    timestamp: int
    ttl: int


@dataclass(frozen=True)
class Remove:
    """A deletion; `what` is columns, row, range or partition."""

    what: str
    pk: int
    low: int
    high: int
    timestamp: int


lists = st.none() | st.lists(small, max_size=3)

columns = st.fixed_dictionaries({}, optional={"v": nullable, "w": nullable, "s": nullable, "m": maps, "l": lists})
inserts = st.builds(Insert, keys, clusterings, columns, timestamps, ttls)
updates = st.builds(
    Update,
    keys,
    clusterings,
    st.fixed_dictionaries({}, optional={"v": nullable, "w": nullable, "s": nullable}),
    st.dictionaries(st.sampled_from("abc"), nullable, max_size=2),
    st.lists(small, max_size=2),
    timestamps,
    ttls,
)
kinds = st.sampled_from(["columns", "row", "range", "from", "until", "partition"])
removals = st.builds(Remove, kinds, keys, clusterings, clusterings, timestamps)
steps = st.lists(inserts | updates | removals, max_size=14)


def shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{key}': {item}" for key, item in value.items()) + "}"
    return str(value)


def using(step: Insert | Update) -> str:
    return f"USING TIMESTAMP {step.timestamp}" + (f" AND TTL {step.ttl}" if step.ttl else "")


def statement(step: Insert | Update | Remove) -> str | None:
    """The step as CQL; None if it would set nothing."""
    if isinstance(step, Insert):
        names = ", ".join(["pk", "ck", *step.values])
        values = ", ".join([str(step.pk), str(step.ck), *map(shown, step.values.values())])
        return f"INSERT INTO t ({names}) VALUES ({values}) {using(step)}"
    if isinstance(step, Update):
        sets = [f"{name} = {shown(value)}" for name, value in step.values.items()]
        sets += [f"m['{key}'] = {shown(value)}" for key, value in step.put.items()]
        sets += [f"l = l + {step.append}"] if step.append else []
        statics = set(step.values) == {"s"} and not step.put and not step.append
        where = f"pk = {step.pk}" + ("" if statics else f" AND ck = {step.ck}")
        return f"UPDATE t {using(step)} SET {', '.join(sets)} WHERE {where}" if sets else None
    at = f"USING TIMESTAMP {step.timestamp} WHERE pk = {step.pk}"
    return {
        "columns": f"DELETE v, m, l FROM t {at} AND ck = {step.low}",
        "row": f"DELETE FROM t {at} AND ck = {step.low}",
        "range": f"DELETE FROM t {at} AND ck >= {step.low} AND ck <= {step.high}",
        "from": f"DELETE FROM t {at} AND ck > {step.low}",
        "until": f"DELETE FROM t {at} AND ck < {step.high}",
        "partition": f"DELETE FROM t {at}",
    }[step.what]


def note(model: CellModel, step: Insert | Update | Remove) -> None:
    """The step as the model sees it."""
    if isinstance(step, Remove):
        _note_removal(model, step)
        return
    key, expiry = (step.pk, step.ck), NOW + step.ttl if step.ttl else None
    if isinstance(step, Insert):
        model.markers.append((key, step.timestamp, expiry))

    def write(column: str, path: Any, value: Any) -> None:
        raw = b"" if value is None else encode(INT, value)
        place = step.pk if column == "s" else key
        alive = expiry if value is not None else None
        model.writes.append(Write(place, column, path, value, raw, step.timestamp, alive))

    for column, value in step.values.items():
        if column not in ("m", "l"):
            write(column, None, value)
            continue
        model.deletions.append(Deletion(step.pk, step.timestamp - 1, step.ck, step.ck, column))
        # An element of a list stands where the timestamp and its number in the statement say.
        elements = (value or {}).items() if column == "m" else enumerate(value or [])
        for path, item in elements:
            write(column, path if column == "m" else (step.timestamp, path), item)
    if isinstance(step, Update):
        for number, item in enumerate(step.append):
            write("l", (step.timestamp, number), item)
        for path, item in step.put.items():
            write("m", path, item)


def _note_removal(model: CellModel, step: Remove) -> None:
    timestamp = step.timestamp
    if step.what == "columns":
        model.writes.append(Write((step.pk, step.low), "v", None, None, b"", timestamp))
        for column in ("m", "l"):
            model.deletions.append(Deletion(step.pk, timestamp, step.low, step.low, column))
        return
    low, high = {
        "row": (step.low, step.low),
        "range": (step.low, step.high),
        "from": (step.low + 1, 99),
        "until": (-99, step.high - 1),
        "partition": (-99, 99),
    }[step.what]
    model.deletions.append(Deletion(step.pk, timestamp, low, high, everything=step.what == "partition"))


@settings(max_examples=250, deadline=None)
@given(steps, st.booleans(), st.data())
def test_histories_show_what_the_model_shows(
    history: list[Insert | Update | Remove], descending: bool, data: st.DataObject
) -> None:
    cql, model = CqlSession(), CellModel()
    order = "DESC" if descending else "ASC"
    cql.execute(f"{TABLE} WITH CLUSTERING ORDER BY (ck {order})")
    pending: list[str] = []
    for step in history:
        text = statement(step)
        if text is None:
            continue
        note(model, step)
        pending.append(text)
        if data.draw(st.booleans()):
            cql.batch(*pending)
            pending = []
    for text in pending:
        cql.execute(text)
    for seconds in (0, 5, 10):
        cql.clock.freeze((NOW + seconds) * 1_000_000)
        rows = cql.rows("SELECT pk, ck, s, m, l, v, w FROM t")
        in_order = [row[1] for row in rows if row[0] == 0 and row[1] is not None]
        assert in_order == sorted(in_order, reverse=descending)
        expected = model.rows(NOW + seconds)
        assert sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1] or 0)) == expected
        paged = [row for page in cql.pages("SELECT pk, ck, s, m, l, v, w FROM t", 2) for row in page]
        assert paged == rows


@settings(max_examples=60, deadline=None)
@given(steps, st.randoms(use_true_random=False))
def test_the_order_of_writes_does_not_matter(history: list[Insert | Update | Remove], random: Any) -> None:
    texts = [text for step in history if (text := statement(step)) is not None]
    answers = []
    for _ in range(2):
        cql = CqlSession()
        cql.execute(TABLE)
        for text in texts:
            cql.execute(text)
        answers.append(cql.rows("SELECT * FROM t"))
        random.shuffle(texts)
    assert answers[0] == answers[1]
