"""Likely intended spellings, for every message about a word that is not known.

In: a word and the words that are known. Out: the one that was probably meant, bare or as a hint; None if none is near.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from typing import NamedTuple


def nearest(word: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The known word that ``word`` most likely meant; upper and lower case make no difference."""
    folded, candidates = word.lower(), _folded(tuple(known))
    length = len(folded)
    # As near as difflib wants them at most, which takes a millisecond for each of the thousands of names that nobody
    # knows and a file may have.
    least, most = length * cutoff / (2 - cutoff) - 0.5, length * (2 - cutoff) / cutoff + 0.5
    close = [each for each in candidates if least <= each.length <= most]
    if length <= _LONGEST and close:
        letters = _letters(folded)
        close = [
            each
            for each in close
            if each.length > _LONGEST or 2 * (letters & each.letters).bit_count() >= cutoff * (length + each.length)
        ]
    by_folded = {each.folded: each.word for each in close}
    found = difflib.get_close_matches(folded, by_folded, n=1, cutoff=cutoff) if close else []
    return by_folded[found[0]] if found else None


class _Candidate(NamedTuple):
    word: str
    folded: str
    length: int
    letters: int


@functools.lru_cache(16)
def _folded(known: tuple[str, ...]) -> tuple[_Candidate, ...]:
    by_folded = {word.lower(): word for word in known}
    return tuple(
        _Candidate(word, folded, len(folded), _letters(folded[:_LONGEST])) for folded, word in by_folded.items()
    )


_KINDS = 48
_LONGEST = 200


def _letters(word: str) -> int:
    """A bit for each letter, each time that it occurs: two words have as many of them in common as they have letters in
    common, or more, since some letters share theirs."""
    bits, seen = 0, [0] * _KINDS
    for letter in word:
        kind = ord(letter) % _KINDS
        bits |= 1 << (kind + _KINDS * seen[kind])
        seen[kind] += 1
    return bits


def did_you_mean(
    word: str, known: Iterable[str], cutoff: float = 0.7, *, before: str = "", behind: str = ""
) -> str | None:
    """The same as a hint; ``before`` and ``behind`` are what stood around the word.

    >>> did_you_mean("rows", ["row", "column"], before="max.")
    'did you mean max.row?'
    """
    meant = nearest(word, known, cutoff)
    return f"did you mean {before}{meant}{behind}?" if meant else None
