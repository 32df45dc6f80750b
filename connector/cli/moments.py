"""Moments on a command line: `now`, ISO times, `-1h`, or milliseconds since 1970.

In: what was typed. Out: milliseconds since 1970, and the same moment in words, so that nobody moves positions by fifty
years through a missing factor of a thousand.
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime

from connector.worker.plausible_times import YEAR_2000, YEAR_2100, iso, of_another_unit

FORMS = "ISO time, -1h, or MS"
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
#: `-1h`, `-90m`, `-1d12h`; with `+` in the future.
RELATIVE = re.compile(r"[+-](?:[0-9]{1,9}[smhdw])+")


def moment(text: str, now_ms: int | None = None) -> int:
    """For argparse: milliseconds since 1970. A time without a zone is this machine's."""
    given, text, now = (
        text.strip(),
        text if len(text) <= 40 else f"{text[:40]}…",
        int(time.time() * 1000) if now_ms is None else now_ms,
    )
    if given.lower() == "now":
        return now
    if RELATIVE.fullmatch(given):
        away = sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhdw])", given))
        return _plausible(text, now - away if given[0] == "-" else now + away)
    if re.fullmatch(r"[+-]?[0-9]+", given):
        return _plausible(text, int(given[:30]))
    try:
        parsed = datetime.fromisoformat(given)
        return _plausible(text, round(parsed.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        hint = "such as 2026-01-31T12:00:00Z, 2026-01-31, -1h, -30m, -2d, now, or milliseconds since 1970"
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write one {hint}") from None


def beginning(text: str) -> int:
    """The same, where 0 and `oldest` mean the oldest there is."""
    return 0 if text.strip().lower() in ("0", "oldest") else moment(text)


def told(ms: int) -> str:
    """A moment for people: ``2026-01-31T12:00:00.000Z (1769860800000)``."""
    return f"{iso(ms)} ({ms})"


def _plausible(text: str, ms: int) -> int:
    if YEAR_2000 <= ms < YEAR_2100:
        return ms
    if 0 <= ms < YEAR_2000:
        what = f"{text} is {iso(ms)}, before the year 2000"
    else:
        what = f"{text} is {'before 1970' if ms < 0 else 'after the year 2100'}"
    raise argparse.ArgumentTypeError(what + _meant(ms, text))


def _meant(ms: int, text: str) -> str:
    """What was probably meant: another unit, a date, everything."""
    if ms == 0:
        return "; for everything that the log has, write oldest"
    if (meant := of_another_unit(ms)) is not None:
        return f"; {meant}"
    if re.fullmatch(r"(19|20|21)\d{6}", text.strip()):
        day = text.strip()
        return f"; as a date it would be {day[:4]}-{day[4:6]}-{day[6:]}: write it so"
    if ms < 0 and text.strip().lstrip("-").isdigit():
        return f"; for so long ago, add a unit: {text.strip()}h, {text.strip()}m, {text.strip()}s"
    return "; milliseconds since 1970 are expected"
