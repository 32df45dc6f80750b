"""The simulated Kafka answers as the real one: what is tested on a broker runs here once more, on the other.

Each of these tests stands in `tests/delivery`, where a real broker takes part in it; here it gets a simulated one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from tests.delivery import test_delivery_hanging_transactions as hanging
from tests.delivery import test_delivery_restore as restoring
from tests.delivery import test_delivery_topics as topics
from tests.delivery import test_delivery_transaction as transacting
from tests.simulation.scenarios import arguments, once_more

# Not asked of the simulated one: it takes every name, and a record of any time.
REAL_ALONE = {
    topics.test_a_topic_that_cannot_be_created_names_its_property,
    topics.test_names_that_no_topic_can_have_are_said_and_need_no_rights,
    transacting.test_a_record_of_a_time_that_the_broker_does_not_take_tells_of_the_clock,
    transacting.test_disabled_notes_no_position_behind_a_record_that_nobody_has,
}


def scenarios() -> list[Callable[..., None]]:
    modules = (restoring, transacting, hanging, topics)
    found = [vars(module)[name] for module in modules for name in vars(module) if name.startswith("test_")]
    return [test for test in found if test not in REAL_ALONE and "code" not in arguments(test)]


@pytest.mark.parametrize("test", scenarios(), ids=lambda test: test.__name__)
def test_the_simulated_kafka_answers_as_the_real_one(
    test: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        once_more(test, caplog)


def test_all_of_them_are_asked() -> None:
    assert len(scenarios()) >= 25
