"""Topics that take no records are looked at a few at a time: others need the threads that wait for their brokers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connector.delivery import TopicFacts
from connector.errors import OthersToo, RetriableDeliveryError
from connector.source import Chores
from connector.worker import topic_troubles
from connector.worker.topic_troubles import LOOKS_AT_ONCE, OTHERS_TOO, TopicTroubles, Unseen
from tests.worker.test_worker_pipeline import PLENTY, pipeline

TOPICS = [f"t{number}" for number in range(10)]


class Held:
    """Chores that end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        self.begun.append((call, then))

    def end(self, error: BaseException | None = None) -> None:
        call, then = self.begun.pop(0)
        then(None if error else call(), error)


def test_many_topics_whose_brokers_are_away_leave_threads_for_others() -> None:
    records, chores, seen = pipeline(), Held(), list[str]()

    def look(topic: str, owners: frozenset[str]) -> TopicFacts:
        seen.append(topic)
        return TopicFacts(topic, 1, False, PLENTY)

    troubles = TopicTroubles(records, look, Unseen(), cast(Chores, chores))
    for topic in TOPICS:
        troubles.suspend(topic, "its leader is not known")
    # The first look fails as a whole: it gives its place back, too.
    troubles.tick()
    chores.end(RuntimeError("the broker is away"))
    while records.suspended_topics.keys() - {"t0"}:
        troubles.tick()
        assert 0 < len(chores.begun) <= LOOKS_AT_ONCE
        chores.end()
    assert {*seen} >= {*TOPICS[1:]}


@pytest.mark.parametrize(
    ("error", "longest"), [(OthersToo("fenced"), OTHERS_TOO[1]), (RetriableDeliveryError("away"), 60.0)]
)
def test_what_others_end_at_this_moment_is_looked_at_soon(
    monkeypatch: pytest.MonkeyPatch, error: Exception, longest: float
) -> None:
    """Three workers that ended what a fourth had left took it from each other, with pauses of a minute at last."""
    now = [1_000.0]
    monkeypatch.setattr(topic_troubles, "time", SimpleNamespace(monotonic=lambda: now[0]))
    records, chores = pipeline(), Held()
    troubles = TopicTroubles(records, lambda topic, owners: "unasked", Unseen(), cast(Chores, chores))
    troubles.suspend("t0", "its readers are blocked")
    troubles.tick()
    waited = []
    for _ in range(12):
        chores.end(error)
        began = now[0]
        while not chores.begun:
            now[0] += 0.5
            troubles.tick()
        waited.append(now[0] - began)
    assert longest - 6 < max(waited) <= longest + 0.5


def test_a_topic_that_all_tables_need_is_looked_at_however_often_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction has the record of a table's description, and fails within seconds where its topic is gone."""
    now = [1_000.0]
    monkeypatch.setattr(topic_troubles, "time", SimpleNamespace(monotonic=lambda: now[0]))
    chores = Held()
    troubles = TopicTroubles(pipeline(), lambda topic, owners: "missing", Unseen(), cast(Chores, chores))
    while not chores.begun and now[0] < 1_030.0:
        troubles.suspend("schemas", "the topic does not exist", refused=True)
        troubles.tick()
        now[0] += 3.0
    assert now[0] <= 1_012.0


def test_whose_transactions_may_be_open_is_known_for_as_long_as_a_topic_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A right that was missing for a quarter of an hour had the one forgotten who was named first."""
    now, right = [1_000.0], False
    monkeypatch.setattr(topic_troubles, "time", SimpleNamespace(monotonic=lambda: now[0]))
    chores, unseen, asked = Held(), Unseen(), list[frozenset[str]]()

    def look(topic: str, owners: frozenset[str]) -> TopicFacts | str:
        asked.append(owners)
        return TopicFacts(topic, 1, False, PLENTY) if right else "no right to see it"

    troubles = TopicTroubles(pipeline(), look, unseen, cast(Chores, chores))
    unseen("t0", "no right to see it", {"dead"})
    for second in range(1_200):
        now[0] += 1.0
        right = second > 1_000
        if second == 900:
            unseen("t0", "no right to see it", {"own"})
        troubles.tick()
        if right and chores.begun:
            # Named while it is looked at: that look is not the last.
            unseen("t0", "its leader is away", {"another"})
            troubles.take_unseen()
            break
        while chores.begun:
            chores.end()
    chores.end()
    assert not troubles.take_ready()
    while not chores.begun:
        now[0] += 1.0
        troubles.tick()
    chores.end()
    assert [facts.name for facts in troubles.take_ready()] == ["t0"]
    assert asked[-2:] == [{"dead", "own"}, {"dead", "own", "another"}]


def test_a_topic_whose_limit_was_lowered_and_raised_again_takes_records_as_before() -> None:
    """That it was lowered was found out by a refusal. When it had its former limit again, that passed for what it had
    refused, and was waited for to be raised until somebody restarted the worker."""
    records, chores, limit = pipeline(), Held(), 600
    records.resume_topic(TopicFacts("t0", 1, False, PLENTY))
    troubles = TopicTroubles(
        records, lambda topic, _: TopicFacts(topic, 1, False, limit), Unseen(), cast(Chores, chores)
    )

    def looked() -> None:
        troubles.tick()
        chores.end()
        troubles.take_ready()

    troubles.suspend("t0", "MSG_SIZE_TOO_LARGE", too_large=True)
    looked()
    assert records.largest_record("t0") == 600 and not records.suspended_topics
    limit = PLENTY
    troubles.look_again(["t0"])
    looked()
    assert records.largest_record("t0") == PLENTY and not records.suspended_topics
    troubles.suspend("t0", "MSG_SIZE_TOO_LARGE", too_large=True)
    troubles.look_again(["t0"])
    looked()
    assert f"max.message.bytes is {PLENTY}" in records.suspended_topics["t0"], "what it is now it has refused"


def test_a_limit_that_we_may_not_see_is_not_told() -> None:
    records, chores, hidden = pipeline(), Held(), TopicFacts("t0", 1, None, PLENTY)
    records.resume_topic(hidden)
    troubles = TopicTroubles(records, lambda *_: hidden, Unseen(), cast(Chores, chores))
    troubles.suspend("t0", "MSG_SIZE_TOO_LARGE", too_large=True)
    troubles.tick()
    chores.end()
    assert records.suspended_topics["t0"] == "MSG_SIZE_TOO_LARGE"


def test_a_topic_that_was_small_while_nobody_looked_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited for a limit that it had: for ever. So did one whose limit we have no right to see."""
    now = [1_000.0]
    monkeypatch.setattr(topic_troubles, "time", SimpleNamespace(monotonic=lambda: now[0]))
    records, chores = pipeline(), Held()
    facts = TopicFacts("t0", 1, False, PLENTY)
    records.resume_topic(facts)
    troubles = TopicTroubles(records, lambda topic, _: facts, Unseen(), cast(Chores, chores))

    def waits() -> float:
        began = now[0]
        troubles.suspend("t0", "MSG_SIZE_TOO_LARGE", too_large=True)
        while records.suspended_topics and now[0] < began + 900:
            troubles.tick()
            while chores.begun:
                chores.end()
            now[0] += 0.5
        return now[0] - began

    assert [60.0 <= waits() <= 70.0 for _ in range(3)] == [True] * 3, "each time all tables' transaction is taken back"
