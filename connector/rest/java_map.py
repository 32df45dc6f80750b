"""How Java prints a map of texts: in the order of a `HashMap` that is as large as its entries need.

In: names and texts. Out: one text.
"""

from __future__ import annotations

from collections.abc import Mapping


def java_map_text(entries: Mapping[str, str | None]) -> str:
    """As ``new HashMap<>(entries).toString()`` does it."""
    size = 1
    while size < int(len(entries) / 0.75 + 1):
        size *= 2
    # Entries of one place stay in the order in which they came.
    ordered = sorted(entries.items(), key=lambda entry: _spread(entry[0]) % size)
    return "{" + ", ".join(f"{name}={'null' if text is None else text}" for name, text in ordered) + "}"


def _spread(text: str) -> int:
    units = text.encode("utf-16-be", errors="surrogatepass")
    found = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (found * 31 + high * 256 + low) & 0xFFFFFFFF
    return found ^ found >> 16
