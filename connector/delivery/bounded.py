"""A call of the Kafka client that may stay away for ever.

In: the call. Out: its end or its error; UnknownOutcome where neither comes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from connector.errors import UnknownOutcome


def bounded(call: Callable[[float], Any], doing: str, seconds: float, hang: float) -> None:
    """``call`` with its timeout of so many ``seconds``, and without it: after a broker's restart librdkafka has been
    seen to stay for ever in `send_offsets_to_transaction`. Such a producer is of no use any more; a new one with its id
    ends what it left open.
    """
    answers: queue.Queue[BaseException | None] = queue.Queue()

    def run() -> None:
        try:
            call(seconds)
        except BaseException as error:
            answers.put(error)
        else:
            answers.put(None)

    threading.Thread(target=run, daemon=True, name="transaction").start()
    try:
        error = answers.get(timeout=hang)
    except queue.Empty:
        raise UnknownOutcome(f"{doing}: the Kafka client does not come back") from None
    try:
        if error is not None:
            raise error
    finally:
        del error  # it knows this frame: together they would keep the client
