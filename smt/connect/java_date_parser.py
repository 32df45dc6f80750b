"""``SimpleDateFormat.parse`` in UTC and English: lenient as Java is, and content with the beginning of a text.

In: a compiled pattern and a text. Out: milliseconds since 1970, or ``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from connector.java_calendar import day_number
from smt.connect.java_dates import DAYS, MONTHS, Part

_NUMBER: Final = re.compile(r"-?\d+")
_HOURS, _MINUTES = "([01][0-9]|2[0-3])", "([0-5][0-9])"
_ZONE: Final = re.compile(
    # A name; GMT with hours, a colon and minutes; hours and minutes of two digits each.
    "UTC|Coordinated Universal Time|Greenwich Mean Time|GMT(?![+-])"
    f"|GMT([+-])([01]?[0-9]|2[0-3]):{_MINUTES}|([+-]){_HOURS}{_MINUTES}",
    re.IGNORECASE,
)
_ISO: Final = {
    1: re.compile(f"Z|([+-]){_HOURS}"),
    2: re.compile(f"Z|([+-]){_HOURS}{_MINUTES}"),
    3: re.compile(f"Z|([+-]){_HOURS}:{_MINUTES}"),
}
#: Of two numbers without a delimiter the first has as many digits as it has letters.
_COUNTED: Final = frozenset("yYdkHmsSuDFwWhKML")
_UNSUPPORTED: Final = frozenset("YwWF")


class DateParser:
    """``since``: when the hundred years begin that two digits may mean."""

    def __init__(self, parts: tuple[Part, ...], since: datetime) -> None:
        self._parts = parts
        self._since = since

    def milliseconds(self, text: str) -> int:
        return _Reading(text, self._since).read(self._parts)


class _Reading:
    def __init__(self, text: str, since: datetime) -> None:
        self.text, self.at, self.since = text, 0, since
        self.fields: dict[str, int] = {}
        #: Whether two digits are of the year in which the hundred years begin, whose first part is in none of them.
        self.at_the_beginning = False

    def read(self, parts: tuple[Part, ...]) -> int:
        for index, part in enumerate(parts):
            if not part.times:
                if not self.text.startswith(part.letter, self.at):
                    raise self.wrong()
                self.at += len(part.letter)
                continue
            while self.text[self.at : self.at + 1] in (" ", "\t"):
                self.at += 1
            if self.at >= len(self.text):
                raise self.wrong()
            after = parts[index + 1] if index + 1 < len(parts) else Part("", 0)
            counted = after.times > 0 and after.letter in _COUNTED and not (after.letter in "ML" and after.times > 2)
            self.field(part.letter, part.times, counted)
        found = self.result()
        if self.at_the_beginning and found < self.since.timestamp() * 1000:
            self.fields["y"] += 100
            found = self.result()
        return found

    def wrong(self) -> ValueError:
        return ValueError(f"{self.text!r} does not match the pattern, from its character {self.at + 1}")

    def field(self, letter: str, count: int, counted: bool) -> None:
        if letter in _UNSUPPORTED:
            raise ValueError(f"the week field {letter} can be written, not read: use a pattern of year, month and day")
        if letter in "ML" and count > 2:
            self.put("M", self.name(MONTHS))
        elif letter == "E":
            self.name(DAYS)
        elif letter == "G":
            self.put("G", self.name(("BC", "AD"), short=2) - 1)
        elif letter == "a":
            self.put("a", self.name(("AM", "PM"), short=2) - 1)
        elif letter in "zZX":
            self.zone(letter, count)
        else:
            self.number(letter, count, counted)

    def put(self, name: str, value: int) -> None:
        # The order tells which of two fields that contradict each other came last.
        self.fields.pop(name, None)
        self.fields[name] = value

    def name(self, names: Iterable[str], short: int = 3) -> int:
        """The number of the name that stands here, from 1; the longest one counts."""
        rest = self.text[self.at :].lower()
        for length in (None, short):
            for number, name in enumerate(names, 1):
                if rest.startswith(name[:length].lower()):
                    self.at += len(name[:length])
                    return number
        raise self.wrong()

    def number(self, letter: str, count: int, counted: bool) -> None:
        start = self.at
        if counted and start + count > len(self.text):
            raise self.wrong()
        found = _NUMBER.match(self.text, start, start + count if counted else len(self.text))
        if found is None:
            raise self.wrong()
        self.at, value = found.end(), int(found[0])
        if letter == "y" and count <= 2 and found.end() - start == 2 and value >= 0:
            begins = self.since.year % 100
            self.at_the_beginning = value == begins
            value += self.since.year - begins + (100 if value < begins else 0)
        if letter == "k":
            letter, value = "H", 0 if value == 24 else value
        elif letter == "h":
            letter, value = "K", 0 if value == 12 else value
        self.put("M" if letter == "L" else letter, value)

    def zone(self, letter: str, count: int) -> None:
        found = (_ISO[count] if letter == "X" else _ZONE).match(self.text, self.at)
        if found is None:
            raise self.wrong()
        self.at = found.end()
        parts = [part for part in found.groups() if part is not None]
        minutes = int(parts[1]) * 60 + (int(parts[2]) if len(parts) > 2 else 0) if parts else 0
        self.put("z", -minutes if parts and parts[0] == "-" else minutes)

    def result(self) -> int:
        fields = self.fields
        order = list(fields)
        year = fields.get("y", 1970)
        if fields.get("G") == 0:
            year = 1 - year
        if "D" in fields and order.index("D") > max((order.index(name) for name in "Md" if name in fields), default=-1):
            days = day_number(year, 1, 1) + fields["D"] - 1
        else:
            more, month = divmod(fields.get("M", 1) - 1, 12)
            days = day_number(year + more, month + 1, 1) + fields.get("d", 1) - 1
        half = [name for name in "Ka" if name in fields]
        # An hour of twelve counts over one of the whole day only with its half, and behind it.
        if "H" not in fields or (len(half) == 2 and max(map(order.index, half)) > order.index("H")):
            hour = fields.get("K", 0) + 12 * fields.get("a", 0)
        else:
            hour = fields["H"]
        minutes = (days * 24 + hour) * 60 + fields.get("m", 0) - fields.get("z", 0)
        return (minutes * 60 + fields.get("s", 0)) * 1000 + fields.get("S", 0)
