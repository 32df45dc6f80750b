"""Whether a name is nearly a known one: a slip of the keys, another style of writing, a part too few or too many.

In: a name and those that are known. Out: the one that was meant, or None for a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from connector.suggestions import nearest

_CUTOFF = 0.86
#: In the connector's own families nobody else has names; properties without effect are hardly worth an error.
_OWN_PREFIXES = ("scylla.", "cdc.")
_OWN_CUTOFF, _IDLE_CUTOFF = 0.78, 0.92


def misspelt(name: str, working: tuple[str, ...], idle: tuple[str, ...] = ()) -> str | None:
    """The known name that this one was meant to be; ``idle`` are names whose value does not matter."""
    plain = _plain(name)
    return _meant(plain, _plain_names(working), plain.startswith(_OWN_PREFIXES)) or _near(plain, _plain_names(idle))


def _meant(plain: str, styles: dict[str, str], own: bool) -> str | None:
    if plain in styles:
        return styles[plain]
    parts = plain.split(".")
    if len(parts) > 1:
        for prefix in _OWN_PREFIXES:
            if prefix + plain in styles:
                return styles[prefix + plain]
            if plain.startswith(prefix) and plain.removeprefix(prefix) in styles:
                return styles[plain.removeprefix(prefix)]
        for other, spelling in styles.items():
            if other.startswith(f"{plain}.") and other.count(".") == len(parts):
                return spelling
            if sorted(other.split(".")) == sorted(parts):
                return spelling
    return _near(plain, styles, _OWN_CUTOFF if own else _CUTOFF)


def _near(plain: str, styles: dict[str, str], cutoff: float = _IDLE_CUTOFF) -> str | None:
    near = nearest(plain, styles, cutoff)
    return styles[near] if near else None


def misspelt_family(name: str, prefixes: Sequence[str]) -> str | None:
    """The name with the beginning that was meant, where it begins nearly as one of the families does."""
    parts = name.split(".")
    for prefix in prefixes:
        length = prefix.count(".")
        begins, rest = ".".join(parts[:length]), ".".join(parts[length:])
        if rest and len(prefix) > 8 and nearest(_plain(begins), (prefix[:-1],), _CUTOFF):
            return prefix + rest
    return None


@cache
def _plain_names(known: tuple[str, ...]) -> dict[str, str]:
    return {_plain(name): name for name in known}


def _plain(name: str) -> str:
    """In Kafka's style: small letters, dots."""
    dotted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", ".", name.strip())
    return re.sub(r"[._\-\s]+", ".", dotted).strip(".").lower()
