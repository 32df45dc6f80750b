"""What nobody has filled in yet: variables of a script that posts a file, templates of other tools.

In: a text as it stands in a file. Out: each place that is to be filled in, and what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from connector.config.forms import OF_A_TEMPLATE, TEMPLATE

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: And what to do about each, with the name of what is to be put there.
_TO_BE_FILLED_IN = ((_PLACEHOLDER, "a variable of the environment is ${{env:{}}}"), (TEMPLATE, OF_A_TEMPLATE))


def unfilled(text: str, *, as_a_whole: bool = False) -> Iterator[tuple[str, str]]:
    """The first place of each kind. ``as_a_whole``: only where nothing else stands beside it."""
    for pattern, advice in _TO_BE_FILLED_IN:
        if found := (pattern.fullmatch if as_a_whole else pattern.search)(text.strip()):
            yield found.group(), advice.format(*found.groups())
