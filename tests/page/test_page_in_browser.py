"""The page in a real browser, before a service that says what a test wants."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.page.browser import ENTER, ESCAPE, TAB, Browser
from tests.page.stage import STREAM, Stage, failed, table
from tests.servers.patience import until

pytestmark = pytest.mark.browser

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
# Every element with text of its own: how it stands out against what is behind it.
CONTRASTS = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => [r, g, b].map((c) => linear(c / 255))
  .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const colour = numbers(getComputedStyle(each).backgroundColor);
    if (colour[3] !== 0) return colour;
  }
  return [255, 255, 255];
};
return [...document.querySelectorAll("#page *")]
  .filter((each) => !each.closest("svg") && each.offsetParent)
  .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .map((each) => {
    const [one, other] = [light(numbers(getComputedStyle(each).color)), light(behind(each))];
    return [each.innerText.slice(0, 40), (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)];
  })
  .filter(([, ratio]) => ratio < 4.5);
"""


def row(browser: Browser, name: str) -> str:
    """What the tables say of one."""
    script = "return [...document.querySelectorAll('.tables tbody tr')].map((row) => row.innerText)"
    return next((text for text in browser.run(script) if name in text), "")


def button(name: str) -> str:
    return f'button[aria-label="{name}"]'


def focused(browser: Browser) -> str:
    script = "const has = document.activeElement; return has.getAttribute('aria-label') ?? has.innerText ?? ''"
    return str(browser.run(script))


def focus(browser: Browser, wanted: str) -> None:
    """By the keyboard alone."""
    for _ in range(80):
        browser.press(TAB)
        if focused(browser) == wanted:
            return
    raise AssertionError(f"the keyboard does not reach {wanted}")


def everything(stage: Stage) -> None:
    """Something in each panel, and in each state."""
    shot = {"ended": False, "began_ms": stage.began_ms, "done": 0.42, "rows": 4200, "rereads": 3}
    shot |= {"undecided": 0, "held_bytes": 2048, "rows_per_second": 350.4, "seconds_left": 300}
    wait = {"reason": "an earlier stream of the same keys is not delivered yet", "slot": 4, "waits_for_slot": 3}
    streams = [STREAM.format(0x6000000000000000)], [STREAM.format(0x1000000000000000)]
    waiting = [
        {**wait, "streams": streams[0], "waits_for": streams[1], "read_to": stage.began_ms, "at": stage.began_ms}
    ]
    stage.workers[0]["tables"] = {
        "shop.orders": failed("unknown cdc$operation 99"),
        "depot.stock": table(state="WAITING", waiting=waiting, waiting_count=1, snapshot=shot, dead_letters=2),
    }
    stage.workers[0]["state"] = "FAILED"
    stage.connectors["shop"]["state"] = "FAILED"
    failing = {"what": "the status topic is not written", "waits": "`status` considers this worker gone", "attempts": 4}
    failing |= {"task": "status_topic", "error": "Kafka at h:9092: refused", "since_ms": stage.began_ms, "about": None}
    stage.workers[1]["background"] = [{**failing, "text": "", "holds_delivery": False}]
    stage.letters = [letter()]
    stage.connector(
        "audit", {"audit.log": table()}, target="PAUSED", waiting_for="connector audit is PAUSED by request"
    )


def letter(**members: Any) -> dict[str, Any]:
    return {
        "partition": 0,
        "offset": 7,
        "time_ms": 1_790_000_000_000,
        "table": "shop.orders",
        "stream_id": STREAM.format(1),
        "time": "6e228e9a-e7f2-11f1-b1cd-8415c63c9664",
        "written_ms": 1_790_000_000_000,
        "batch_seq_no": 0,
        "stage": "VALUE_CONVERTER",
        "exception": "connector.errors.PoisonRow",
        "message": "unknown cdc$operation 99",
        "length": 330,
        "rows": [{"cdc$operation": "0x63", "customer": "0x6d616c6c6f7279"}],
        "raw": None,
        "cut": False,
        **members,
    }


def test_figures_are_there_and_go_on_without_a_reload(browser: Browser, stage: Stage) -> None:
    browser.open(stage.url)
    browser.shows("shop.orders", "depot.stock", "2.5 s", "Nothing waits, nothing has failed.")
    assert "2\u202f400" in row(browser, "shop.orders")  # two workers have some of it each
    stage.workers[0]["tables"]["shop.orders"]["records"] += 5000
    until(lambda: "7\u202f400" in row(browser, "shop.orders"), 60, lambda: row(browser, "shop.orders"))


def test_its_pulse_beats_with_each_answer_and_draws_nothing_in_between(browser: Browser, stage: Stage) -> None:
    browser.open(stage.url)
    browser.shows("shop.orders")
    assert browser.run("return document.getAnimations().length") == 0
    pale = "return Number(getComputedStyle(document.querySelector('.pulse'), '::before').opacity) < 1"
    browser.until(pale)
    browser.until(pale.replace("< 1", "=== 1"))


def test_a_rate_and_a_latency_are_those_of_the_last_moments(browser: Browser, stage: Stage) -> None:
    browser.open(stage.url)
    browser.shows("depot.stock")
    grown = stage.workers[0]["tables"]["depot.stock"]

    def grow() -> None:
        grown["records"] += 100
        grown["latency_seconds"]["counts"][2] += 100
        browser.run("return 1")

    def said() -> bool:
        cells = row(browser, "depot.stock").split("\t")
        return len(cells) > 6 and cells[3].strip() not in ("–", "0") and "s" in cells[5]

    # All of the new batches took from 5 to 30 s; those from before the page was opened do not count.
    until(said, 60, lambda: row(browser, "depot.stock"), step=grow)
    half = row(browser, "depot.stock").split("\t")[5].strip()
    assert half.endswith(" s") and 10 < float(half.split()[0]) < 30


def test_whatever_something_is_called_it_is_text(browser: Browser, stage: Stage) -> None:
    hostile = failed(f"cannot decode {HOSTILE}")
    stage.workers[0]["tables"] = {HOSTILE: hostile}
    stage.workers[0]["waiting_for"] = HOSTILE
    stage.workers[0]["host"] = HOSTILE
    stage.letters = [letter(table=HOSTILE, message=HOSTILE, rows=[{HOSTILE: HOSTILE}])]
    stage.connector(HOSTILE, {"ks.t": table()}, given_up=HOSTILE)
    browser.open(stage.url)
    browser.shows(f"cannot decode {HOSTILE}")
    browser.until("return document.querySelectorAll('#letters details').length")
    browser.run("document.querySelector('#letters details').open = true")
    browser.shows(HOSTILE, selector="#letters table")
    browser.click(button(f"Pause {HOSTILE}").replace("'", "\\'"))
    browser.shows(HOSTILE, selector="#question")
    browser.press(ESCAPE)
    browser.open(f"{stage.url}#{HOSTILE}/{HOSTILE}/%")
    browser.shows(HOSTILE)
    assert browser.run(
        "return [window.hacked ?? null, document.querySelectorAll('#page script, #page img').length]"
    ) == [
        None,
        0,
    ]


def test_what_has_failed_is_named_and_tried_again(browser: Browser, stage: Stage) -> None:
    everything(stage)
    browser.open(stage.url)
    text = browser.shows("unknown cdc$operation 99", "slot 3", selector="#waits")
    assert text.index("FAILED") < text.index("WAITING"), "the worst comes first"
    assert "0x20000000" in text and "waits for slot 3" in text and "0x10000000" in text
    assert "the status topic is not written" in text
    assert "42.0 %" in browser.text("#snapshots")
    assert "350 rows/s · about 5 min to go" in browser.text("#snapshots")
    browser.click(button("Retry shop"))
    until(lambda: stage.told, 60, "a restart")
    [(method, path)] = stage.told
    assert (method, path.partition("?")[0]) == ("POST", "/connectors/shop/restart")
    assert {*path.partition("?")[2].split("&")} == {"includeTasks=true", "onlyFailed=true"}
    browser.shows("Retry shop: done.", selector="#said")


def test_a_service_that_is_gone_is_said_to_be_and_since_when(browser: Browser, stage: Stage) -> None:
    browser.open(stage.url)
    browser.shows("shop.orders")
    before = time.time()
    with stage.away():
        text = browser.shows("does not answer since", selector=".banner")
        assert "What is shown is what it said last." in text and "shop.orders" in browser.text()
        since = [int(part) for part in text.split("since ")[1].split(" ")[0].split(":")]
        said = time.mktime((*time.localtime(before)[:3], *since, 0, 0, -1))
        assert abs(said - before) < 60 + time.time() - before
        browser.click(button("Pause shop"))
        browser.shows("The service does not answer.", selector="#said")
        assert "✕" in str(browser.run("return document.title"))
    browser.until("return !document.querySelector('.banner')")
    assert stage.told == []


def test_a_service_that_hangs_is_not_mistaken_for_one_that_is_well(browser: Browser, stage: Stage) -> None:
    browser.open(stage.url)
    browser.shows("shop.orders")
    stage.answers.clear()
    browser.shows("does not answer since", "nothing comes", selector=".banner")
    stage.answers.set()
    browser.until("return !document.querySelector('.banner')")


def test_a_token_is_asked_for_and_sent(browser: Browser) -> None:
    with Stage(token="an-operators-token") as stage:
        browser.open(stage.url)
        browser.shows("rest.bearer.token")
        assert "shop" not in browser.text("main")
        for text in ("wrong", "an-operators-token"):
            browser.until("document.getElementById('token').focus(); return true")
            browser.run("document.getElementById('token').select()")
            browser.press(*text, ENTER)
            if text == "wrong":
                browser.shows("That is not its token.")
        browser.shows("shop.orders")
        browser.until(
            "return document.querySelector(arguments[0]).getAttribute('aria-disabled') === 'false'", button("Stop shop")
        )
        browser.click(button("Stop shop"))
        browser.click("#question .strong")
        until(lambda: stage.asked, 60, "a stop")
        assert stage.asked == [("PUT", "/connectors/shop/stop", "Bearer an-operators-token")]
        # For this tab alone, and not behind its end.
        assert browser.run("return [localStorage.length, document.cookie]") == [0, ""]
        browser.click(".head button:last-child")
        browser.shows("rest.bearer.token")


def test_who_may_not_write_is_told_why(browser: Browser, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.http.access.is_loopback", lambda host: False)
    browser.open(stage.url)
    browser.shows("shop.orders")
    browser.until("return document.querySelector(arguments[0])", button("Pause shop"))
    assert browser.run("return document.querySelector(arguments[0]).ariaDisabled", button("Pause shop")) == "true"
    browser.click(button("Pause shop"))
    browser.shows("only this machine may change anything", selector="#said")
    assert stage.told == []


def test_a_refusal_is_shown_with_its_words(browser: Browser, stage: Stage) -> None:
    stage.writable = False
    browser.open(stage.url)
    browser.until("return document.querySelector(arguments[0])?.ariaDisabled === 'false'", button("Restart worker 1"))
    browser.click(button("Restart worker 1"))
    browser.shows("a rebalance is under way", selector="#said")
    # As Connect numbers it, among the workers of all processes.
    assert stage.told == [("POST", "/connectors/shop/tasks/11/restart")]


def test_all_of_it_by_keyboard(browser: Browser, stage: Stage) -> None:
    stage.connector("audit", {"audit.log": table()})
    browser.open(stage.url)
    browser.until("return document.querySelector(arguments[0])?.ariaDisabled === 'false'", button("Pause audit"))
    focus(browser, "audit")
    browser.press(ENTER)
    browser.shows("audit.log", selector="#tables")
    focus(browser, "Pause audit")
    browser.press(ENTER)
    browser.shows("Pause audit?", selector="#question")
    browser.press(ESCAPE)
    browser.until("return !document.getElementById('question').open")
    assert focused(browser) == "Pause audit", "the focus comes back to where it was"
    assert stage.told == []
    # It stays there while everything is drawn anew.
    stage.workers[2]["tables"]["audit.log"]["records"] = 77_000
    until(lambda: "77\u202f000" in row(browser, "audit.log"), 60, "an answer")
    assert focused(browser) == "Pause audit"
    assert browser.run("return document.activeElement.matches(':focus-visible')")
    browser.press(ENTER)
    browser.shows("Pause audit?", selector="#question")
    browser.press(TAB, ENTER) if focused(browser) == "Cancel" else browser.press(ENTER)
    until(lambda: stage.told == [("PUT", "/connectors/audit/pause")], 60, lambda: str(stage.told))


def test_what_is_chosen_stands_in_the_address(browser: Browser, stage: Stage) -> None:
    stage.groups = [
        {"range_start": None, "range_end": "0", "slot": 1, "state": "ended", "streams": 2, "first": STREAM.format(5)},
        *(
            {
                "range_start": str(a),
                "range_end": str(b),
                "slot": 2,
                "state": "reading",
                "streams": 2,
                "first": STREAM.format(n),
            }
            for n, (a, b) in enumerate(((-(2**63), 0), (0, 2**63 - 1)))
        ),
    ]
    stage.foreign = [{"worker": "x", "index": 0, "host": "there", "pid": 7, "here": False, "state": "RUNNING"}]
    stage.workers[1]["slots"] = [*range(6, 11)]
    stage.foreign[0] |= {"slots": [11], "slots_pending": [], "stale": False, "age_ms": 900}
    browser.open(f"{stage.url}#shop/shop.orders")
    browser.shows("shop.orders", selector="#ring header")
    browser.until("return document.querySelectorAll('.ring .group').length === 2")
    assert browser.run("return document.querySelectorAll('.ring .slot').length") == 12
    label = browser.until(
        "const said = document.querySelector('.ring').ariaLabel; return said.includes('there') && said"
    )
    assert "worker 0: 0–5" in label and "worker 0 of there:7: 11" in label
    assert "there:7" in browser.text("#workers") and "another process" in browser.text("#workers")
    browser.run(
        "[...document.querySelectorAll('.tables .link')].find((each) => each.innerText === 'depot.stock').click()"
    )
    browser.shows("depot.stock", selector="#ring header")
    assert str(browser.run("return location.hash")) == "#shop/depot.stock"


def test_dead_letters_open_to_their_raw_rows(browser: Browser, stage: Stage) -> None:
    long = letter(offset=8, rows=None, raw="no JSON \x00", cut=True, message=None, exception=None)
    stage.letters = [letter(), long]
    browser.open(stage.url)
    browser.shows("unknown cdc$operation 99", "no reason is given", selector="#letters")
    browser.run("document.querySelectorAll('#letters details').forEach((each) => (each.open = true))")
    text = browser.shows("0x6d616c6c6f7279", "“mallory”", "Only its beginning is shown.", selector="#letters")
    assert "scylla-cdc read shop.orders --from 1790000000000 --raw" in text
    # It stays open, and is looked at again when there are more.
    stage.letters.insert(0, letter(offset=9, message="another one"))
    stage.workers[0]["tables"]["shop.orders"]["dead_letters"] = 3
    browser.shows("another one", selector="#letters")
    assert browser.run("return document.querySelectorAll('#letters details[open]').length") == 2


def test_what_kafka_would_have_to_say_is_missing_visibly_while_it_is_away(browser: Browser, stage: Stage) -> None:
    stage.trouble = "Kafka at h:9092: connection refused"
    stage.connectors["shop"] |= {"state": "WAITING", "waiting_for": stage.trouble}
    browser.open(stage.url)
    browser.shows("They cannot be shown: Kafka at h:9092", selector="#letters")
    browser.shows("connection refused", selector="#waits")
    assert "shop.orders" in browser.text("#tables")


def test_a_worker_that_died_is_seen_to_be_started_again(browser: Browser, stage: Stage) -> None:
    why = "worker 1 is started again (it ended before: killed by signal 9)"
    stage.workers[1] |= {"starting": True, "state": "WAITING", "waiting_for": why, "last_report_age_seconds": 12.0}
    stage.connectors["shop"] |= {"state": "WAITING", "workers_running": 1}
    browser.open(stage.url)
    browser.shows("killed by signal 9", selector="#waits")
    assert "1 of 2 running here" in browser.text("#workers") and "starting" in browser.text("#workers")
    assert "12 s ago" in browser.text("#workers")


def test_the_newest_word_about_a_slot_counts(browser: Browser, stage: Stage) -> None:
    """One that hangs does not know that another one has taken over from it."""
    stage.workers[0]["slots"] = [*range(12)]
    stage.workers[1] |= {"state": "WAITING", "last_report_age_seconds": 9.0}
    stage.changed |= {"restarts": 1}
    browser.open(stage.url)
    label = browser.until("return document.querySelector('.ring')?.ariaLabel")
    assert "worker 0: 0–11" in label and "worker 1" not in label
    browser.shows("1 worker ended")


def test_no_connector_at_all(browser: Browser, stage: Stage) -> None:
    stage.connectors, stage.workers = {}, []
    browser.open(stage.url)
    browser.shows("There are no connectors yet.")


@pytest.mark.parametrize("width", [360, 800, 1280, 2200])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_is_readable_at_any_width_in_light_and_dark(browser: Browser, stage: Stage, width: int, dark: bool) -> None:
    everything(stage)
    browser.looks_like(width, 800, dark=dark)
    browser.open(stage.url)
    browser.shows("unknown cdc$operation 99", selector="#waits")
    browser.shows("unknown cdc$operation 99", selector="#letters")
    browser.run("document.querySelector('#letters details').open = true")
    assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0
    assert browser.run(CONTRASTS) == []
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 23, 26)") == dark
    if width < 700:
        heights = browser.run(
            "return [...document.querySelectorAll('button')].map((each) => each.offsetHeight).filter((each) => each)"
        )
        assert min(heights) >= 34, "for fingers"


def test_every_control_has_a_name_and_every_panel_a_heading(browser: Browser, stage: Stage) -> None:
    everything(stage)
    browser.open(stage.url)
    browser.shows("unknown cdc$operation 99", selector="#waits")
    browser.devtools("Accessibility.enable")
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    named = [(each["role"]["value"], each.get("name", {}).get("value", "")) for each in nodes if not each["ignored"]]
    controls = [name for role, name in named if role in ("button", "image", "progressbar", "dialog", "table")]
    assert len(controls) > 15
    assert not [
        role for role, name in named if role in ("button", "image", "progressbar", "region") and not name.strip()
    ]
    headings = {name.lower() for role, name in named if role == "heading"}
    assert {"scylla-cdc", "tables", "ring", "workers", "dead letters", "snapshots"} <= headings
