"""How fast a snapshot goes: rows come in lots, snapshots follow each other, some wait."""

from connector.table_name import TableName
from connector.worker.snapshot_paces import Pace, SnapshotPaces

TABLE = TableName("ks", "t")


def test_a_pace_is_that_of_the_last_minutes() -> None:
    paces = SnapshotPaces()
    assert paces.of(TABLE, "one", 0, 0.0, 0) == Pace()
    # A lot each 10 s, of a hundredth of the table; asked more often than that.
    found = [paces.of(TABLE, "one", at * 1000, at // 10 / 100, at // 10 * 500) for at in range(1, 301)]
    assert found[4] == Pace(0.0, None)
    assert found[99] == Pace(50.0, 900) and found[299] == Pace(50.0, 700)
    # It stands still, for longer than from one lot to the next: nothing is promised.
    still = [paces.of(TABLE, "one", at * 1000, 0.3, 15_000) for at in range(301, 600)]
    assert still[15].seconds_left is not None
    assert {pace.seconds_left for pace in still[22:]} == {None}
    assert 0 < still[100].rows_per_second < 25 and still[-1] == Pace(0.0, None)
    # It goes on.
    assert paces.of(TABLE, "one", 600_000, 0.31, 15_500).seconds_left is not None


def test_each_snapshot_has_its_own_pace_and_waiting_is_none() -> None:
    paces = SnapshotPaces()
    paces.of(TABLE, "one", 0, 0.0, 0)
    assert paces.of(TABLE, "one", 10_000, 0.5, 100) == Pace(10.0, 10)
    assert paces.of(TABLE, "two", 11_000, 0.1, 120) == Pace()
    assert paces.of(TABLE, "two", 21_000, 0.2, 140) == Pace(2.0, 80)
    paces.forget(TABLE)
    assert paces.of(TABLE, "two", 3_600_000, 0.2, 140) == Pace()
    assert paces.of(TABLE, "two", 3_605_000, 0.3, 150) == Pace(2.0, 35)
