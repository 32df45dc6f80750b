"""Rows that the server makes up are found and replaced, whatever the pages; real ones that look the same stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connector.changes import TableDescription
from connector.errors import ReplicasAway
from connector.source import phantom_rows
from connector.source.base_rows import BaseQuery
from connector.source.pages import RawPage, Row
from connector.source.phantom_rows import SecondLooks, scan, without_phantoms

TABLE = TableDescription("ks", "t", "", ())
QUERY = BaseQuery(TABLE, ("pk",), ("pk", "ck", "s", "v"), ("s", "v"), 1, (3, 5), True)
KEYS_ONLY = BaseQuery(TABLE, ("pk",), ("pk", "ck", "s"), ("s",), 1, (), True)

Partition = tuple[bytes | None, Sequence[tuple[bytes, bytes | None]]]
"""A static value, and rows of clustering key and value: as a server holds them."""

CELLS = st.sampled_from([None, b"", b"x"])
PARTITIONS = st.lists(
    st.tuples(CELLS, st.lists(st.tuples(st.sampled_from([b"1", b"2"]), CELLS), max_size=3)), max_size=9
)


def at(cell: bytes | None) -> bytes | None:
    return None if cell is None else b"written"


def true_rows(number: int, partition: Partition, valued: bool) -> list[Row]:
    static, rows = partition[0], list[tuple[bytes | None, bytes | None]](partition[1])
    key = number.to_bytes(4, "big")
    if not rows and static is not None:
        rows = [(None, None)]
    if not valued:
        return [(key, ck, static, at(static)) for ck, _ in rows]
    return [(key, ck, static, value, at(static), at(value)) for ck, value in rows]


def scanned(rows: Sequence[Row], size: int, first: bytes | None, carried: bool) -> Iterator[RawPage]:
    """Pages as the server shows them. ``first`` is what a page's first row gets for its clustering key where that is
    null; ``carried``: that of the page before."""
    last: bytes | None = None
    for start in range(0, len(rows), size):
        last = last if carried else first
        shown: list[Row] = []
        for row in rows[start : start + size]:
            last = last if row[1] is None else row[1]
            shown.append((row[0], last, *row[2:]))
        yield RawPage((), (), shown)


def read(
    partitions: Sequence[Partition],
    size: int,
    *,
    valued: bool = True,
    first: bytes | None = None,
    carried: bool = False,
    later: dict[int, Partition] | None = None,
) -> tuple[list[Row], SecondLooks]:
    """What a reader makes of it; ``later`` is what partitions have become when they are read a second time."""
    rows = [row for number, one in enumerate(partitions) for row in true_rows(number, one, valued)]

    def by_keys(keys: Sequence[Row]) -> Iterable[RawPage]:
        for (key,) in keys:
            number = int.from_bytes(key or b"", "big")
            partition = (later or {}).get(number, partitions[number])
            alone = true_rows(number, partition, valued)
            yield from (RawPage((), (), alone[at : at + size]) for at in range(0, len(alone), size))

    looks = SecondLooks()
    query = QUERY if valued else KEYS_ONLY
    pages = without_phantoms(scanned(rows, size, first, carried), query, by_keys, looks)
    return [row for page in pages for row in page.rows], looks


ALONE: Partition = (b"x", [])
"""Static values only."""


@settings(max_examples=400)
@given(PARTITIONS, st.integers(1, 5), st.sampled_from([None, b"1", b"2"]), st.booleans(), st.booleans())
@example([(None, [(b"1", b"x")]), ALONE, ALONE], 1, None, True, True)
@example([(None, [(b"1", b"x")]), (None, [(b"1", None)]), ALONE], 2, None, False, True)
@example([(None, [(b"1", None), (b"2", None)]), ALONE], 2, b"2", False, False)
def test_what_is_read_is_what_is_there(
    drawn: list[Partition], size: int, first: bytes | None, carried: bool, valued: bool
) -> None:
    """In order, every row once, nothing else; whatever a page's first row was given for a key."""
    partitions: list[Partition] = [(static, sorted(dict(rows).items())) for static, rows in drawn]
    expected = [row for number, one in enumerate(partitions) for row in true_rows(number, one, valued)]
    found, looks = read(partitions, size, valued=valued, first=first, carried=carried)
    assert found == expected
    alone = sum(1 for row in expected if row[1] is None)
    assert looks.phantoms <= alone and looks.phantoms <= looks.partitions


def test_only_what_is_in_doubt_is_read_twice() -> None:
    valued: list[Partition] = [(b"s", [(b"1", b"x")])] * 20
    assert read(valued, 7)[1] == SecondLooks(0, 0), "rows with values"
    several: list[Partition] = [(b"s", [(b"1", None), (b"2", None)])] * 20
    assert read(several, 7)[1] == SecondLooks(0, 0), "partitions of several rows, also across pages"
    marked: list[Partition] = [(None, [(b"%d" % number, None)]) for number in range(20)]
    assert read(marked, 10)[1].partitions == 2, "rows of a key alone: those at the beginning of a page"
    mixed: list[Partition] = [(b"s", [(b"1", b"x")]), ALONE] * 10
    assert read(mixed, 20)[1] == SecondLooks(10, 10)


def test_a_partition_that_changes_meanwhile_is_shown_as_it_is_at_one_time() -> None:
    before: list[Partition] = [(None, [(b"1", b"x")]), ALONE, (None, [(b"1", b"x")]), ALONE, (b"s", [(b"2", b"y")])]
    written: Partition = (b"new", [(b"1", b"a"), (b"2", b"b"), (b"3", None)])
    found, looks = read(before, 5, later={1: written, 3: (None, [])})
    assert [row[0][-1] for row in found if row[0]] == [0, 1, 1, 1, 2, 4]
    assert found[1:4] == true_rows(1, written, True)
    assert looks.partitions == 2


def test_pages_keep_their_order_and_size_where_nothing_is_in_doubt() -> None:
    rows = [row for number in range(9) for row in true_rows(number, (b"s", [(b"1", b"x")]), True)]
    pages = list(without_phantoms(scanned(rows, 4, None, False), QUERY, lambda keys: pytest.fail(), SecondLooks()))
    assert [len(page.rows) for page in pages] == [4, 4, 1]
    assert [row for page in pages for row in page.rows] == rows


def test_of_rows_that_are_refused_it_is_told_which_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = ReplicasAway("reading from db:9042: too few replicas are up: QUORUM needs 2, 1 are")
    refusal.node = "db"

    def refused(*_: object, **__: object) -> Iterator[RawPage]:
        raise refusal

    monkeypatch.setattr(phantom_rows, "read_pages", refused)
    with pytest.raises(
        ReplicasAway, match=r"^rows with -5 < token\(pk\) <= 7: reading from db:9042: .* QUORUM"
    ) as told:
        list(scan(SimpleNamespace(statement=print), QUERY, (-5, 7), SecondLooks()))  # type: ignore[arg-type]
    assert told.value.node == "db"
