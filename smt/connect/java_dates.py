"""``SimpleDateFormat`` in UTC and English: times as texts, and texts as times.

In: a pattern, milliseconds since 1970. Out: texts, or milliseconds; ``ValueError`` where Java refuses the pattern.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from connector.java_calendar import day_number, java_date

_LETTERS: Final = "GyMdkHmsSEDFwWahKzZYuXL"
_PART: Final = re.compile(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+|.", re.DOTALL)
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_DAY_MS: Final = 86_400_000


class Part(NamedTuple):
    """A letter of the pattern and how often it stands there, or a text (``times`` 0)."""

    letter: str
    times: int


def compiled(pattern: str) -> tuple[Part, ...]:
    """The parts of a pattern."""
    parts = []
    for found in _PART.finditer(pattern):
        text, quoted, letter = found[0], found[1], found[2]
        if letter is not None:
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            if letter == "X" and len(text) > 3:
                raise ValueError(f"invalid ISO 8601 format: length={len(text)}")
            parts.append(Part(letter, len(text)))
        elif text == "'":
            raise ValueError("Unterminated quote")
        else:
            parts.append(Part("'" if text == "''" else text if quoted is None else quoted.replace("''", "'"), 0))
    return tuple(parts)


def formatted(parts: tuple[Part, ...], milliseconds: int) -> str:
    """The time as a text."""
    time = _Time(milliseconds)
    return "".join(part.letter if not part.times else time.text(*part) for part in parts)


class _Time:
    def __init__(self, milliseconds: int) -> None:
        self.days, rest = divmod(milliseconds, _DAY_MS)
        self.year, self.month, self.day = java_date(self.days)
        self.hour, rest = divmod(rest, 3_600_000)
        self.minute, rest = divmod(rest, 60_000)
        self.second, self.millisecond = divmod(rest, 1000)
        self.weekday = (self.days + 4) % 7

    def text(self, letter: str, count: int) -> str:
        if letter in "yY":
            year = self.year if letter == "y" else self.week_year()[0]
            year = year if year > 0 else 1 - year
            return f"{year % 100:02}" if count == 2 else str(year).zfill(count)
        if letter in "ML":
            name = MONTHS[self.month - 1]
            return str(self.month).zfill(count) if count < 3 else name if count > 3 else name[:3]
        if letter == "E":
            return DAYS[self.weekday] if count > 3 else DAYS[self.weekday][:3]
        if letter == "G":
            return "AD" if self.year > 0 else "BC"
        if letter == "a":
            return "AM" if self.hour < 12 else "PM"
        if letter == "z":
            return "Coordinated Universal Time" if count > 3 else "UTC"
        if letter == "Z":
            return "+0000"
        if letter == "X":
            return "Z"
        return str(self.number(letter)).zfill(count)

    def number(self, letter: str) -> int:
        numbers = {
            "d": self.day,
            "H": self.hour,
            "k": self.hour or 24,
            "K": self.hour % 12,
            "h": self.hour % 12 or 12,
            "m": self.minute,
            "s": self.second,
            "S": self.millisecond,
            "D": self.days - day_number(self.year, 1, 1) + 1,
            "F": (self.day - 1) // 7 + 1,
            "u": self.weekday or 7,
        }
        if letter in numbers:
            return numbers[letter]
        if letter == "w":
            return self.week_year()[1]
        first = (self.weekday - self.day + 1) % 7
        return (self.day - 1 + first) // 7 + 1

    def week_year(self) -> tuple[int, int]:
        """Year and week, which begins on Sunday; the first is that of 1 January."""
        sunday = self.days - self.weekday
        year = java_date(sunday + 6)[0]
        first = day_number(year, 1, 1)
        return year, (sunday - (first - (first + 4) % 7)) // 7 + 1


def java_date_text(milliseconds: int) -> str:
    """A date, a time or both in ISO 8601, as Connect chooses by the value alone."""
    time = f"{formatted(_CLOCK, milliseconds)}Z"
    if milliseconds < _DAY_MS:
        return time
    date = formatted(_DATE, milliseconds)
    return date if milliseconds % _DAY_MS == 0 else f"{date}T{time}"


_CLOCK: Final = compiled("HH:mm:ss.SSS")
_DATE: Final = compiled("yyyy-MM-dd")
