"""Log lines: one an event, for people or as JSON, tracebacks only when debugging."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime

import pytest

from connector.cli.logs import Speaker, set_up_logging


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield
    root.handlers[:], _ = before
    root.setLevel(before[1])
    logging.captureWarnings(False)


def lines(log_format: str, *, debug: bool = False, speaker: Speaker | None = None) -> list[str]:
    stream = io.StringIO()
    set_up_logging(log_format, debug=debug, stream=stream, speaker=speaker)
    logger = logging.getLogger("connector.worker.loop")
    logger.debug("details")
    logger.info("claimed\nslot", extra={"slot": 3, "table": "ks.t"})
    try:
        raise ValueError("bad\nvalue")
    except ValueError:
        logger.exception("failed")
    logging.getLogger("somebody.else").info("chatter")
    logging.getLogger("somebody.else").warning("warned")
    return stream.getvalue().splitlines()


def test_for_people_one_line_an_event() -> None:
    first, second, third = lines("human")
    assert first.endswith(r"INFO connector.worker.loop: claimed\nslot slot=3 table=ks.t")
    assert second.endswith(r"ERROR connector.worker.loop: failed (ValueError: bad\nvalue)")
    assert third.endswith("WARNING somebody.else: warned")


def test_for_machines_one_object_an_event() -> None:
    first, second, _ = (json.loads(line) for line in lines("json"))
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "connector.worker.loop",
        "message": "claimed\nslot",
        "slot": 3,
        "table": "ks.t",
    }
    assert second["error"] == "ValueError: bad\nvalue"


def test_each_line_of_a_worker_names_it_and_each_time_its_zone() -> None:
    for line in lines("human", speaker=Speaker("orders", 3)):
        moment, _, who, _ = line.split(" ", 3)
        assert who == "[orders/3]"
        assert datetime.fromisoformat(moment).utcoffset() is not None
    for line in lines("json", speaker=Speaker("orders", 3)):
        event = json.loads(line)
        assert (event["connector"], event["worker"]) == ("orders", 3)
        assert datetime.fromisoformat(event["time"]).utcoffset() is not None


def test_debugging_tells_all() -> None:
    text = "\n".join(lines("human", debug=True))
    assert "details" in text and "Traceback" in text and "chatter" not in text
    assert "Traceback" in json.loads(lines("json", debug=True)[2])["error"]
