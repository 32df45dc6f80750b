"""Times on a command line: what is taken, what is refused with a better word, what is shown."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import pytest

from connector.cli.command import Parser
from connector.cli.moments import beginning, iso, moment, told
from connector.errors import UsageError

NOW = 1_795_328_220_500


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("now", NOW),
        (" NOW ", NOW),
        ("1795328220500", NOW),
        ("-1h", NOW - 3_600_000),
        ("-30m", NOW - 1_800_000),
        ("-2d", NOW - 172_800_000),
        ("-45s", NOW - 45_000),
        ("-1w", NOW - 604_800_000),
        ("-1d12h", NOW - 129_600_000),
        ("+10m", NOW + 600_000),
        ("2026-11-22T06:17:00.500Z", NOW),
        ("2026-11-22T06:17:00.500+00:00", NOW),
        ("2026-11-22 07:17:00.500+01:00", NOW),
        # Of this machine, without a zone.
        ("2026-11-22T07:17:00.500", NOW),
        ("2026-11-22 07:17", NOW - 500),
        ("2026-11-22", NOW - 500 - (7 * 60 + 17) * 60_000),
        ("2026-07-01T02:00", 1_782_864_000_000),
    ],
)
def test_a_time_is_taken_in_every_usual_form(text: str, ms: int, in_berlin: None) -> None:
    assert moment(text, NOW) == ms


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1795328220", "as seconds it would be 2026-11-22T06:17:00.000Z: write 1795328220000"),
        ("1795328220500123", "as microseconds it would be 2026-11-22T06:17:00.500Z"),
        ("1795328220500123456", "as nanoseconds it would be 2026-11-22T06:17:00.500Z"),
        ("0", "for everything that the log has, write oldest"),
        ("20261122", "as a date it would be 2026-11-22"),
        ("-30", "for so long ago, add a unit: -30h, -30m, -30s"),
        ("1999-12-31T23:59:59Z", "before the year 2000"),
        ("-40000d", "before 1970; milliseconds"),
        ("2300-01-01", "after the year 2100"),
        ("9" * 5000, "after the year 2100"),
        ("yesterday", "is no time: write one such as"),
        ("", "is no time"),
        ("-1y", "is no time"),
        ("1h", "is no time"),
        ("2026-13-01", "is no time"),
        ("1795328220500.5", "is no time"),
        ("٣", "is no time"),
        ("-999999999w", "before"),
    ],
)
def test_what_would_be_another_time_than_meant_is_refused(text: str, meant: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        moment(text, NOW)
    assert meant in str(refused.value)


def test_the_oldest_is_a_beginning() -> None:
    assert beginning("0") == beginning("oldest") == 0
    assert beginning("1795328220500") == NOW


def test_a_moment_is_told_with_its_date() -> None:
    assert told(NOW) == "2026-11-22T06:17:00.500Z (1795328220500)"
    assert moment(iso(NOW)) == NOW


def test_a_relative_time_needs_no_equals_sign() -> None:
    parser = Parser(prog="p")
    parser.add_argument("--from", dest="begin", type=moment)
    parser.add_argument("--until", type=moment)
    args = parser.parse(["--from", "-1h", "--until=-30m"])
    assert args.until - args.begin == pytest.approx(1_800_000, abs=10_000)
    with pytest.raises(UsageError) as refused:
        parser.parse(["--from", "1795328220"])
    assert "write 1795328220000" in str(refused.value)
