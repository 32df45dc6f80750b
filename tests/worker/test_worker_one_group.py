"""One connector is one group: what is started beside a connector that runs ends with an error, and delivers nothing."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from tests.servers.patience import until
from tests.servers.scylla import Scylla
from tests.worker.harness import Service, exactly_once

pytestmark = [pytest.mark.kafka, pytest.mark.scylla, pytest.mark.only_double("servers of the same machine")]
Alike = Callable[..., list[Service]]


@pytest.fixture
def alike(tmp_path: Path, scylla: Scylla, kafka: EmbeddedKafka, unique: Callable[[str], str]) -> Iterator[Alike]:
    """Services of one name for one table: one for each of the differences that are given."""
    made: list[Service] = []

    def make(table: str, *differs: dict[str, str]) -> list[Service]:
        name = unique("c")
        for number, worker in enumerate(differs):
            folder = tmp_path / str(number)
            folder.mkdir()
            made.append(
                Service(folder, scylla, kafka.bootstrap_servers, name, [table], {"tasks.max": "1"}, worker=worker)
            )
        return made

    yield make
    for each in made:
        each.close()


@pytest.fixture
def table(make_table: Callable[..., str]) -> str:
    return make_table(tablets=True)


GREEN = {"group.id": "green"}
# Of one that must not be thrown out of its group because the machine is busy with something else.
LASTING = {"session.timeout.ms": "45000"}


def insert(session: Session, table: str, keys: range) -> None:
    for pk in keys:
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, 0, 'v')")


def test_what_is_started_beside_it_ends_and_may_take_over_once_it_has_stopped(
    alike: Alike, session: Session, table: str, unique: Callable[[str], str]
) -> None:
    first, green, elsewhere = alike(table, LASTING, GREEN, {"offset.storage.topic": unique("other")})
    run = first.start()
    insert(session, table, range(5))
    assert exactly_once(first, session, table) == 5
    others = [green.start(), elsewhere.start()]
    assert [green.ended(other) for other in others] == [2, 2]
    for words in ("group.id = 'green'", f"group test-{first.name} ({first.name}-", "stop the other workers"):
        assert words in green.log
    assert f"with another offsets topic, {first.name}-offsets" in elsewhere.log
    insert(session, table, range(5, 10))
    assert exactly_once(first, session, table) == 10
    refused = green.command("offsets", "reset", "--to", "oldest")
    assert (refused.returncode, "is running" in refused.stderr) == (1, True)
    reported = [each["pid"] for each in first.report()["workers"]]
    assert reported == first.workers(run), "none of those that were refused"
    assert first.stop(run) == 0
    until(lambda: first.report()["state"] == "STOPPED", what=lambda: f"that nobody is waited for: {first.report()}")

    other = green.start()
    insert(session, table, range(10, 15))
    assert exactly_once(green, session, table) == 15
    assert f"instead of test-{first.name}" in green.log
    assert green.stop(other) == 0


def test_of_two_groups_that_are_started_together_one_delivers(alike: Alike, session: Session, table: str) -> None:
    first, second = alike(table, {}, GREEN)
    insert(session, table, range(20))
    runs = [first.start(), second.start()]
    loser = until(lambda: next((run for run in runs if run.poll() is not None), None), 120, "the end of one")
    assert loser.poll() == 2
    insert(session, table, range(20, 30))
    assert exactly_once(first, session, table) == 30
    assert [run.poll() for run in runs if run is not loser] == [None]


def test_a_group_that_slept_delivers_nothing_when_it_wakes_up_beside_another(
    alike: Alike, session: Session, table: str
) -> None:
    first, second = alike(table, {}, GREEN)
    run = first.start()
    insert(session, table, range(5))
    assert exactly_once(first, session, table) == 5
    pids = [*first.workers(run), run.pid]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    insert(session, table, range(5, 10))
    # It is a member until its session ends, and is not for longer.
    second.start()
    assert exactly_once(second, session, table) == 10
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGCONT)
    insert(session, table, range(10, 20))
    assert first.ended(run) == 2
    assert f"green-{first.name}" in first.log
    insert(session, table, range(20, 25))
    assert exactly_once(second, session, table) == 25
