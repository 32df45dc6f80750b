"""What the page's paths answer, and what its files do not contain."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pytest

from connector.page.routes import KINDS, Once
from tests.page.stage import Stage

SOURCES = {each.name: each.read_text() for each in files("connector.page").iterdir() if each.name.endswith((*KINDS,))}
PAGE = ("/ui", "/ui/page.js", "/ui/page.css", "/ui/icon.svg")


def get(stage: Stage, path: str, token: str | None = None) -> tuple[int, Any, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{stage.port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_the_files_are_for_everybody_and_the_figures_are_not() -> None:
    with Stage(token="an-operators-token") as stage:
        for path in PAGE:
            assert get(stage, path)[0] == 200
        for path in ("/ui/access", "/status", "/status/shop/slots", "/status/shop/dead-letters", "/ui/nothing"):
            assert get(stage, path)[0] == 401
        assert json.loads(get(stage, "/ui/access", "an-operators-token")[2])["may_write"] is True


def test_the_policy_lets_nothing_in_from_elsewhere_and_nothing_inline(stage: Stage) -> None:
    for path in PAGE:
        _, headers, _ = get(stage, path)
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert {policy[f"{kind}-src"] for kind in ("script", "style", "connect", "img")} == {"'self'"}
        assert policy["require-trusted-types-for"] == "'script'"
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"


def test_no_file_names_another_host_or_makes_markup_of_text() -> None:
    assert {"page.html", "page.css", "page.js", "dom.js"} <= {*SOURCES}
    for name, text in SOURCES.items():
        hosts = set(re.findall(r"//([\w.-]+\.[a-z]+)", text)) - {"www.w3.org"}  # the name of SVG, which nobody asks
        assert not hosts, name
        found = re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|srcdoc", text)
        assert not found, name


def test_every_file_that_a_file_asks_for_is_there(stage: Stage) -> None:
    named = {path for text in SOURCES.values() for path in re.findall(r"(?:\./|ui/)([\w-]+\.(?:js|css|svg))", text)}
    assert len(named) > 8
    assert {name: get(stage, f"/ui/{name}")[0] for name in named} == dict.fromkeys(named, 200)


def test_a_slash_at_the_end_leads_to_the_page(stage: Stage) -> None:
    status, _, text = get(stage, "/ui/")
    assert status == 200 and "<title>" in text  # redirected
    assert "page.css" in text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/status/shop/slots", 200),
        ("/status/no/slots", 404),
        ("/status/no/dead-letters", 404),
        ("/status/shop/dead-letters?limit=1", 200),
        ("/status/shop/dead-letters?limit=0", 400),
        ("/status/shop/dead-letters?limit=201", 400),
        ("/status/shop/dead-letters?limit=x", 400),
        ("/status/shop/dead-letters?limit=99999999999999999999", 400),
        ("/status/shop/streams", 400),
        ("/status/shop/streams?table=shop.orders", 200),
    ],
)
def test_details_of_a_connector(stage: Stage, path: str, status: int) -> None:
    assert get(stage, path)[0] == status


def test_what_cannot_be_found_out_now_is_a_503_with_the_reason(stage: Stage) -> None:
    stage.trouble = "Kafka at h:9092: connection refused"
    status, _, text = get(stage, "/status/shop/dead-letters")
    assert status == 503 and stage.trouble in text


def test_for_many_who_look_it_is_found_out_once() -> None:
    calls: list[int] = []
    go = threading.Event()

    def slowly() -> Mapping[str, Any]:
        calls.append(1)
        assert go.wait(60)
        return {"found": True}

    async def many() -> list[Mapping[str, Any] | None]:
        once = Once()
        asked = [asyncio.create_task(once.answer(("letters",), slowly)) for _ in range(8)]
        asked[0].cancel()  # who goes away takes nobody's answer along
        go.set()
        return list(await asyncio.gather(*asked[1:]))

    assert asyncio.run(many()) == [{"found": True}] * 7
    assert len(calls) == 1
