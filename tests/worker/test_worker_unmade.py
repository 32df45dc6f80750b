"""What waits to become records is told until records of it are committed, whatever else of its table is delivered."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from connector.errors import PoisonRow, RetriableDeliveryError
from connector.source import Background
from connector.worker.unmade import RECORDS, TURN_SECONDS, RecordsNotMade, Unmade


class Case:
    """One table's records, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.background = Background(lambda: self.now, lambda: self.now)
        self.unmade = Unmade(self.background, 30.0, lambda: self.now)
        self.task = self.background.task(RECORDS, "ks.t")

    def make(self, slot: int, part: Hashable, error: Exception | None = None) -> None:
        with self.unmade.making("ks.t", slot, part):
            if error is not None:
                raise error

    def fail(self, slot: int, part: Hashable) -> None:
        with pytest.raises(RecordsNotMade):
            self.make(slot, part, RetriableDeliveryError("topic c.ks.t: refused"))

    @property
    def fails(self) -> bool:
        return bool(self.background.failing())


def test_it_is_over_when_what_was_made_is_committed() -> None:
    case = Case()
    case.fail(0, 1)
    case.make(0, 1)
    assert case.fails, "its topic has not answered yet"
    case.unmade.aborted()
    case.unmade.committed()
    assert case.fails, "what was committed is not what was aborted before"
    case.make(0, 1)
    case.unmade.committed()
    assert not case.fails


def test_other_groups_that_are_delivered_say_nothing_of_one_that_waits() -> None:
    case = Case()
    case.fail(0, 1)
    case.fail(0, 2)
    for _ in range(3):
        case.make(0, 1)
        case.make(1, 2)
        case.unmade.committed()
        assert case.fails
        case.fail(0, 2)
    case.make(0, 2)
    case.unmade.committed()
    assert not case.fails


def test_how_long_it_lasts_counts_from_its_first_failure() -> None:
    case = Case()
    for _ in range(10):
        case.fail(0, 1)
        case.make(0, 1)
        case.unmade.aborted()
        case.now += 2.0
    assert [failing.lasting for failing in case.background.failing(lasting=True)] == [20.0]


def test_what_has_no_part_is_over_when_it_is_made() -> None:
    """Descriptions are made by whichever slot is the first just then."""
    case = Case()
    case.fail(3, None)
    case.make(0, None)
    assert not case.fails


def test_what_can_never_become_records_is_not_waited_for() -> None:
    case = Case()
    case.fail(0, 1)
    case.fail(0, 2)
    with pytest.raises(PoisonRow):
        case.make(0, 1, PoisonRow("no such type"))
    assert case.fails
    with pytest.raises(PoisonRow):
        case.make(0, 2, PoisonRow("no such type"))
    assert not case.fails


def test_what_waits_in_slots_that_are_lost_is_told_by_others() -> None:
    case = Case()
    case.fail(0, 1)
    case.fail(5, 1)
    case.unmade.released(frozenset({0, 1}))
    assert case.fails
    case.unmade.released(frozenset({5}))
    assert not case.fails


def test_what_is_not_tried_any_more_is_gone() -> None:
    """Its rows have expired, say."""
    case = Case()
    case.fail(0, 1)
    case.now = 60.0 + TURN_SECONDS - 1.0
    case.unmade.committed()
    assert case.fails
    case.now += 2.0
    case.unmade.committed()
    assert not case.fails


def test_a_table_that_was_dropped_in_between_begins_anew() -> None:
    case = Case()
    case.fail(0, 1)
    case.background.dismiss("ks.t")
    case.fail(0, 2)
    case.make(0, 2)
    case.unmade.committed()
    assert not case.fails
