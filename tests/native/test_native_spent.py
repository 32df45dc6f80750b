"""Blocks after an abort: a broker does not take them for those that the abort left in its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from connector.native import BlockClient, Kernel
from tests.delivery.test_delivery_spent import (
    LATER_MS,
    Stage,
    what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next,
)
from tests.native.test_native_kafka import block_of
from tests.servers.path import FarKafka, far_kafka

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def far() -> Iterator[FarKafka]:
    with far_kafka() as kafka:
        yield kafka


def test_what_an_abort_left_in_the_log_is_not_taken_for_the_next_block(
    far: FarKafka, unique: Callable[[str], str], kernel: Kernel, block_client: BlockClient
) -> None:
    stage = Stage(far, unique("t"), LATER_MS, block_client)
    first, second = block_of(kernel, stage.topic, *"abc"), block_of(kernel, stage.topic, *"xyz")
    what_an_abort_left_in_the_log_is_not_taken_for_what_comes_next(stage, first, second)
    assert not first.output.lent and not second.output.lent
