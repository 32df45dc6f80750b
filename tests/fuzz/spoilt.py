"""JSON that is nearly what it should be: parts exchanged, left out, added; text cut and mended wrongly.

In: a ``random.Random``, a value. Out: another value, or its text.
"""

from __future__ import annotations

import json
import random
from typing import Any

SCALARS: list[Any] = [
    None,
    True,
    0,
    -1,
    2**40,
    2**70,
    1.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    "x",
    "\x00",
    "\ud800",
]
SCALARS += ["9" * 5000, "ks", "t", "PAUSED", [], {}, [[]], {"": 1}]


_ODD = ["", "[" * 2_000, "9" * 5_000, "1e999", "\\ud800", "\x00", "é", '"', "{"]


def spoilt(draw: random.Random, value: Any, depth: int = 3) -> Any:
    """The same JSON value, with some of its parts exchanged, left out, or added to."""
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(SCALARS)
    if isinstance(value, dict):
        made = {name: spoilt(draw, part, depth - 1) if draw.random() < 0.4 else part for name, part in value.items()}
        if made and draw.random() < 0.2:
            del made[draw.choice(list(made))]
        if draw.random() < 0.2:
            made[draw.choice(["x", "", "\ud800", "group", "config"])] = draw.choice(SCALARS)
        return made
    if isinstance(value, list):
        return [spoilt(draw, part, depth - 1) if draw.random() < 0.4 else part for part in value]
    return value


def text_of(draw: random.Random, value: Any) -> str:
    """As JSON, whole or not quite."""
    text = json.dumps(value)
    for _ in range(draw.choice([0, 0, 0, 1, 3])):
        at = draw.randrange(len(text) + 1)
        text = (
            text[:at]
            + draw.choice(["", "[" * 2_000, "9" * 5_000, "1e999", "\\ud800", "\x00", "é", '"', "{"])
            + text[at + 1 :]
        )
    return text


def bytes_of(draw: random.Random, value: Any) -> bytes:
    raw = text_of(draw, value).encode()
    return raw if draw.random() < 0.9 else raw + draw.randbytes(3)
