"""What a running job and upkeep remove, and when: never what a reader, or the published table, still needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

from connector.errors import LandingError
from spark_jobs.config.settings import load_settings
from spark_jobs.jobs import upkeep
from spark_jobs.stream.housekeeping import Housekeeping
from spark_jobs.stream.purging import purge_limit
from spark_jobs.tables.landed_table import Restored
from spark_jobs.tables.lease import Lease, LocalFolder

HOUR_S, DAY_MS = 3600.0, 86_400_000


class Beside:
    """A clock, a landed table, and what publishes it; all that is done is noted."""

    def __init__(self, history: bool = False, **properties: Any) -> None:
        self.seconds = 0.0
        self.done: list[tuple[Any, ...]] = []
        self.history = history
        self.published_through: int | None = None
        self.known_: Any = self
        self.asked = 0
        self.rest: int | None = None
        settings = {"name": "j", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["ks.t"], "warehouse": "w"}
        self.house = Housekeeping(load_settings({**settings, **properties}), lambda: self.seconds)

    def known(self) -> Any:
        self.asked += 1
        return self.known_

    @property
    def sink(self) -> Any:
        return self

    def folders(self) -> list[str]:
        return ["changelog"]

    def remove_changes(self, through: int) -> None:
        self.done.append(("changes", through))

    def compact_changes(self, through: int, after: int | None) -> int | None:
        self.done.append(("compact", through) if after is None else ("compact", through, after))
        return self.rest

    def remove_positions(self, newer: dict[tuple[str, int], int]) -> None:
        self.done.append(("positions", newer))

    def vacuum(self, *arguments: Any) -> None:
        self.done.append(("vacuum", *arguments))

    def keep(self) -> list[tuple[Any, ...]]:
        self.done = []
        self.house.keep(cast(Any, self), cast(Any, self), {("p", 0): 9})
        return self.done


def test_merged_changes_go_when_no_reader_can_still_ask_for_them() -> None:
    beside = Beside(**{"reader.grace.ms": 1_200_000})
    beside.house.merged(3)
    assert not beside.house.is_due
    beside.seconds = 600
    assert beside.house.is_due and beside.keep() == [] and not beside.house.is_due
    beside.house.merged(5)
    beside.seconds = 1300
    assert beside.keep() == [("changes", 3), ("positions", {("p", 0): 9})]
    assert beside.keep() == [], "once"
    assert beside.asked == 1, "to ask a table is a query, of each of hundreds that are silent"
    beside.seconds = 1900
    beside.published_through = 4
    assert beside.keep()[0] == ("changes", 4), "the rest is still to be published"
    beside.published_through = 6
    assert beside.keep()[0] == ("changes", 5)


def test_changes_of_a_history_stay_and_a_table_that_is_not_known_is_left_alone() -> None:
    beside = Beside(history=True, **{"reader.grace.ms": 0})
    beside.house.merged(3)
    assert beside.keep() == [("positions", {("p", 0): 9})]
    beside.known_ = None
    beside.house.merged(4)
    assert beside.keep() == []


def test_files_that_a_commit_may_be_about_to_name_stay() -> None:
    beside = Beside()
    beside.seconds = HOUR_S - 1
    assert beside.keep() == []
    beside.seconds = HOUR_S
    assert beside.keep() == [("vacuum", "changelog", DAY_MS), ("vacuum", 7 * DAY_MS), ("compact", 0)]
    beside.seconds = 2 * HOUR_S
    assert beside.keep() == []
    beside.seconds = 7 * HOUR_S
    assert len(beside.keep()) == 3
    eager = Beside(**{"reader.grace.ms": 0, "publish.retention.ms": 0})
    eager.seconds = HOUR_S
    assert eager.keep()[:2] == [("vacuum", "changelog", DAY_MS), ("vacuum", DAY_MS)]


def test_what_stays_for_good_gets_larger_files_once_no_reader_waits_for_its_merge() -> None:
    """Each batch leaves files, and those of a history were there for ever: each query of it opened all of them."""
    beside = Beside(history=True)
    beside.house.merged(3)
    beside.seconds = 2 * HOUR_S
    beside.house.merged(5)
    done = beside.keep()
    assert (done[0], done[-1]) == (("positions", {("p", 0): 9}), ("compact", 3))
    beside.seconds = 4 * HOUR_S
    assert beside.keep() == [("positions", {("p", 0): 9})], "not with every upkeep"
    beside.seconds = 9 * HOUR_S
    beside.rest = 4
    assert beside.keep()[-1] == ("compact", 5), "last, so that its failure keeps nothing else from being done"
    beside.rest = None
    beside.seconds += 300
    assert beside.keep() == [("compact", 5, 4)], "a portion with each upkeep: the table is not published meanwhile"
    assert beside.keep() == []


def test_no_delete_is_forgotten_while_something_older_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter tells its time when it is read by the definition that it waits for, what a backfill has read none."""
    found: dict[str, int | None] = {"timeless": 1, "first": 100}
    landed: Any = MagicMock(**{"session.sql.return_value.first.return_value": found})
    restored = Restored(None, {}, 0, 1, 0, None)
    limit = purge_limit(landed, restored, {}, {}, 500)
    assert (limit.time_us, limit.why) == (None, "dead letters of unknown time wait for a definition or a schema")
    found["timeless"] = 0
    assert purge_limit(landed, restored, {}, {}, 500).time_us == 99, "what is not merged may be older"
    monkeypatch.setattr(upkeep, "Parcels", lambda _: SimpleNamespace(waiting=lambda: ["one"]))
    settings: Any = SimpleNamespace(tombstone_retention_ms=0, topics_of=list)
    _, limit = upkeep._limit(landed, settings, cast(Any, ()), None, print)
    assert (limit.time_us, limit.why) == (None, "a backfill is under way")


@pytest.mark.parametrize(("holder", "waits"), [("land", True), ("maintain", False)])
def test_upkeep_waits_for_a_job_that_lands_and_not_for_itself(
    holder: str, waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only one process may write it holds the job's lease, and waited half a minute for each table in vain."""
    landed: Any = SimpleNamespace(session=None, restore=lambda: Restored(None, {}, 0, 1, 0, None))
    topics = SimpleNamespace(offsets=lambda _, beginning=False: {("p", 0): 0 if beginning else 9}, close=lambda: None)
    settings: Any = SimpleNamespace(tombstone_retention_ms=0, topics_of=list, kafka=dict, name="job")
    folder = LocalFolder(str(tmp_path))
    monkeypatch.setattr(upkeep, "Parcels", lambda _: SimpleNamespace(waiting=list))
    monkeypatch.setattr(upkeep, "Topics", lambda *_: topics)
    monkeypatch.setattr(upkeep, "leases", lambda *_: folder)
    monkeypatch.setattr(upkeep, "_CATCH_UP_S", 0.1)
    said: list[str] = []
    with Lease(folder, "job", 60_000, holder):
        _, limit = upkeep._limit(landed, settings, cast(Any, ()), None, said.append)
    assert limit.why == "p, partition 0 is not landed to its end"
    assert bool(said) == waits


def test_upkeep_that_has_lost_its_lease_goes_on_with_no_further_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who took it over writes, and only one process may."""
    folder, session = LocalFolder(str(tmp_path)), cast(Any, None)

    @contextlib.contextmanager
    def held(*_: Any) -> Iterator[Lease]:
        with Lease(folder, "job", 60_000, "maintain") as lease:
            yield lease

    def kept_up(*_: Any) -> None:
        assert folder.create("job.2", '{"token": "of another one"}')

    job = {"name": "job", "bootstrap.servers": "k", "topic.prefix": "p", "tables": ["k.t", "k.u"], "warehouse": "w"}
    monkeypatch.setattr(upkeep, "upkeep_lease", held)
    monkeypatch.setattr(upkeep, "open_sink", lambda *_: None)
    monkeypatch.setattr(upkeep, "LandedTable", lambda *_: SimpleNamespace(exists=lambda: True))
    monkeypatch.setattr(upkeep, "_kept_up", kept_up)
    with pytest.raises(LandingError, match="another process took over"):
        upkeep.maintain(session, load_settings(job))
