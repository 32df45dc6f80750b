"""Numbers on the command line: argparse types for whole numbers within bounds.

In: a text, of any length and script. Out: the number, or one sentence about what is wrong with it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: Enough for every bound there is; Python refuses to read thousands.
_MOST_DIGITS = 18


def whole(least: int, most: int = 10**_MOST_DIGITS, what: str = "number") -> Callable[[str], int]:
    """A type for ``add_argument``: ASCII digits, ``least`` to ``most``."""
    bounds = f"of {least} or more" if most == 10**_MOST_DIGITS else f"from {least} to {most}"

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        known = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
        if not known or not least <= int(text) <= most:
            shown = text if len(text) <= 40 else text[:40] + "…"
            raise argparse.ArgumentTypeError(f"{shown} is not a {what} {bounds}")
        return int(text)

    return read


positive = whole(1)
count = whole(0)
port = whole(0, 65_535, "port number")
