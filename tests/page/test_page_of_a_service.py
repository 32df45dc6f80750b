"""The page of a real service under faults: several connectors, one of them FAILED, a worker that dies, Kafka away."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from embedded.kafka import EmbeddedKafka
from tests.page.browser import Browser
from tests.servers.patience import until
from tests.servers.scylla import Scylla
from tests.worker.conftest import make_table, session
from tests.worker.harness import Service

__all__ = ["make_table", "session"]
pytestmark = [pytest.mark.browser, pytest.mark.kafka, pytest.mark.scylla]


def malform(session: Session, table: str) -> None:
    """A row with an operation that nobody knows, in a stream that is in use."""
    log = f"{table}_scylla_cdc_log"
    stream = session.execute(f'SELECT "cdc$stream_id" AS s FROM {log} LIMIT 1').one().s
    session.execute(
        f'INSERT INTO {log} ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$end_of_batch", '
        f"pk, ck) VALUES (0x{stream.hex()}, now(), 0, 77, true, 1, 1)"
    )


def define(service: Service, name: str, **changed: str) -> None:
    config = json.loads(service.config_file.read_text())["config"]
    config |= {"topic.prefix": name, "tasks.max": "1", "offset.storage.topic": f"{name}-offsets", **changed}
    assert service.post("/connectors", body={"name": name, "config": config}) == 201


def choose(browser: Browser, connector: str) -> None:
    script = "[...document.querySelectorAll('.strip .name')].find((each) => each.innerText === arguments[0]).click()"
    browser.run(script, connector)


def press(browser: Browser, name: str, *, twice: bool = False) -> None:
    """A button that can be pressed; ``twice``: it asks back."""
    browser.until("return document.querySelector(arguments[0])?.ariaDisabled === 'false'", f'[aria-label="{name}"]')
    browser.run("document.querySelector(arguments[0]).click()", f'[aria-label="{name}"]')
    if twice:
        browser.until("return document.getElementById('question').open")
        browser.click("#question .strong")


def test_faults_are_seen_and_mended_on_the_page(
    browser: Browser,
    tmp_path: Path,
    scylla: Scylla,
    own_kafka: EmbeddedKafka,
    session: Session,
    make_table: Callable[..., str],
    unique: Callable[[str], str],
) -> None:
    table = make_table(tablets=False)
    for pk in range(20):
        session.execute(f"INSERT INTO {table} (pk, ck, v) VALUES ({pk}, 0, 'v')")
    malform(session, table)
    service = Service(tmp_path, scylla, own_kafka.bootstrap_servers, unique("c"), [table])
    try:
        run = service.start("--http-port", "0", files=False)
        browser.open(f"http://127.0.0.1:{service.http_port()}/ui")
        browser.shows("There are no connectors yet.", seconds=120)
        dead: dict[str, Any] = {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "dead",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
        define(service, "lenient", **dead)
        define(service, "strict")
        browser.shows("lenient", "strict", selector=".strip", seconds=180)

        choose(browser, "lenient")
        browser.shows("unknown cdc$operation 77", selector="#letters", seconds=180)
        assert browser.run("document.querySelector('#letters details').open = true; return true")
        browser.shows("0x4d", selector="#letters")
        browser.until("return document.querySelectorAll('.ring .group').length > 1", seconds=120)

        choose(browser, "strict")
        browser.shows("FAILED", "unknown cdc$operation 77", "slot", selector="#waits", seconds=180)
        press(browser, "Retry strict")
        until(lambda: "asked to try again what is FAILED" in service.log, 90, "the worker to be told")

        choose(browser, "lenient")
        press(browser, "Pause lenient", twice=True)
        browser.shows("PAUSED", selector=".connector.chosen", seconds=120)
        browser.shows("keeps what is not delivered for", selector="#waits")
        press(browser, "Resume lenient")
        browser.until(
            "return document.querySelector('.connector.chosen .state').innerText.includes('RUNNING')", seconds=180
        )
        [worker] = [
            each["pid"] for each in json.loads(service.get("/status")[1])["workers"] if each["connector"] == "lenient"
        ]
        os.kill(worker, signal.SIGKILL)
        browser.shows("killed by signal 9", selector="#waits", seconds=120)
        browser.until(
            "return document.querySelector('.connector.chosen .state').innerText.includes('RUNNING')", seconds=180
        )

        own_kafka.kill()
        browser.shows(own_kafka.bootstrap_servers, selector="#waits", seconds=180)
        browser.run("[...document.querySelectorAll('#letters > button')].at(-1).click()")
        browser.shows("They cannot be shown", own_kafka.bootstrap_servers, selector="#letters", seconds=120)
        own_kafka.start()
        browser.until(
            "return document.querySelector('.connector.chosen .state').innerText.includes('RUNNING')", seconds=240
        )
        run.kill()
        browser.shows("does not answer since", selector=".banner", seconds=90)
    finally:
        service.close()
