"""What nobody has filled in yet: variables of a script that posts a file, templates of other tools.

In: a text as it stands in a file. Out: each place that is to be filled in, and what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from connector.config.forms import OF_A_TEMPLATE, TEMPLATE

_A_VARIABLE = "a variable of the environment is ${{env:{}}}"
#: And what to do about each, with the name of what is to be put there.
_TO_BE_FILLED_IN = (
    (re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"), _A_VARIABLE),
    (TEMPLATE, OF_A_TEMPLATE),
    (re.compile(r"#\{[^{}]+\}#"), "it is what a pipeline fills in: give what is made of it"),
    (re.compile(r"(?<!\?)(?<!\?P)(?<!\\k)<[A-Za-z][\w .:-]*>"), "something of yours is to be put there"),
)
#: These may be anything else inside of a text, and a password even as a whole: then the advice does not repeat it.
_AS_A_WHOLE = (
    (re.compile(r"\$([A-Z_][A-Z0-9_]*)"), _A_VARIABLE),
    (re.compile(r"%([A-Z_][A-Z0-9_]*)%"), _A_VARIABLE),
)


def unfilled(text: str, *, as_a_whole: bool = False) -> Iterator[tuple[str, str]]:
    """The first place of each kind. ``as_a_whole``, of a secret: only where nothing else stands beside it; it is not
    repeated."""
    text = text.strip()
    for pattern, advice in _TO_BE_FILLED_IN:
        if found := (pattern.fullmatch if as_a_whole else pattern.search)(text):
            yield "its value" if as_a_whole else found.group(), advice.format(*found.groups())
    for pattern, advice in _AS_A_WHOLE:
        if found := pattern.fullmatch(text):
            yield ("its value", advice.format("NAME")) if as_a_whole else (text, advice.format(found[1]))
