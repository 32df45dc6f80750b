"""Moments that somebody may mean: a number of another unit would move positions by fifty years.

In: milliseconds since 1970. Out: why they are none, with what was probably meant.
"""

from __future__ import annotations

from datetime import UTC, datetime

YEAR_2000 = 946_684_800_000
YEAR_2100 = 4_102_444_800_000

_UNITS = (("seconds", 1000.0), ("microseconds", 1e-3), ("nanoseconds", 1e-6))


def implausible(ms: int) -> str | None:
    """
    >>> implausible(1_760_000_000)
    'before the year 2000; as seconds it would be 2025-10-09T08:53:20.000Z: write 1760000000000'
    """
    if YEAR_2000 <= ms < YEAR_2100:
        return None
    what = "before 1970" if ms < 0 else "before the year 2000" if ms < YEAR_2000 else "after the year 2100"
    meant = of_another_unit(ms)
    return f"{what}; milliseconds since 1970 are expected" if meant is None else f"{what}; {meant}"


def of_another_unit(ms: int) -> str | None:
    """What to write, if a number is a plausible time in seconds, or the like."""
    for unit, factor in _UNITS:
        meant = round(ms * factor) if abs(ms) < 10**25 else 0
        if YEAR_2000 <= meant < YEAR_2100:
            return f"as {unit} it would be {iso(meant)}: write {meant}"
    return None


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
