"""Likely intended spellings, for every message about a word that is not known.

In: a word and the words that are known. Out: the one that was probably meant, bare or as a hint; None if none is near.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The known word that ``word`` most likely meant; upper and lower case make no difference."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(word.lower(), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None


def did_you_mean(
    word: str, known: Iterable[str], cutoff: float = 0.7, *, before: str = "", behind: str = ""
) -> str | None:
    """The same as a hint; ``before`` and ``behind`` are what stood around the word.

    >>> did_you_mean("rows", ["row", "column"], before="max.")
    'did you mean max.row?'
    """
    meant = nearest(word, known, cutoff)
    return f"did you mean {before}{meant}{behind}?" if meant else None
