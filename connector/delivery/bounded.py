"""A call of the Kafka client that may stay away for ever.

In: the call. Out: its end or its error; UnknownOutcome where neither comes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from typing import Any

from connector.aside import aside
from connector.errors import UnknownOutcome


def bounded(call: Callable[[float], Any], doing: str, seconds: float, hang: float) -> None:
    """``call`` with its timeout of so many ``seconds``, and without it: after a broker's restart librdkafka has been
    seen to stay for ever in `send_offsets_to_transaction`. Such a producer is of no use any more; a new one with its id
    ends what it left open.
    """
    answer = aside(partial(call, seconds), "transaction")
    try:
        if not wait([answer], hang).done:
            raise UnknownOutcome(f"{doing}: the Kafka client does not come back")
        answer.result()
    finally:
        del answer  # its error knows this frame: together they would keep the client
