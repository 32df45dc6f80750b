"""Variables in texts, ``${NAME:-default}``: what compose puts in their place.

In: a text, and what is known of variables. Out: the text with them; ``ValueError`` with what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-?+])?")
_DEEPEST = 50
#: More than any value has; a few lines that name each other are enough to write far more.
_LONGEST = 2**18


def reference(variable: str) -> str:
    """What stands for a variable of the environment in a configuration."""
    return f"${{env:{variable}}}"


@dataclass(frozen=True, slots=True)
class Variables:
    """Those of the process, and beneath them those of a file."""

    environ: Mapping[str, str]
    of_file: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str | None:
        return self.environ.get(name, self.of_file.get(name))

    def text(self, name: str) -> str:
        """What stands in its place. What a file does not say is a reference: it is looked up with all others, is told
        if it is nowhere, and is no plain text in files that are written."""
        return self.of_file[name] if name in self.of_file and name not in self.environ else reference(name)


def substituted(text: str, variables: Variables, *, plain: bool = False) -> str:
    """``$$`` stands for a ``$``. ``plain``: with values in place of references, or with nothing."""
    return _scanned(text, 0, variables, plain, 0)[0] if "$" in text else text


def _scanned(text: str, at: int, variables: Variables, plain: bool, depth: int) -> tuple[str, int]:
    """From ``at`` on, to the end, or to the brace that closes what this is inside of."""
    if depth > _DEEPEST:
        raise ValueError("a ${ in too many others")
    parts, length = list[str](), 0
    while at < len(text) and not (depth and text[at] == "}"):
        name, braced = _NAME.match(text, at + 1), _BRACED.match(text, at)
        if text[at] != "$":
            parts.append(text[at])
            at += 1
        elif text.startswith("$$", at):
            parts.append("$")
            at += 2
        elif name is not None:
            parts.append(_stands_for(name.group(), variables, plain))
            at = name.end()
        elif braced is not None:
            word, at = _scanned(text, braced.end(), variables, plain, depth + 1)
            if at == len(text) or (word and braced[2] is None):
                raise ValueError("a ${ that is no variable")
            parts.append(_expanded(braced[1], braced[2] or "", word, variables, plain))
            at += 1
        else:
            raise ValueError("a $ that begins no variable")
        length += len(parts[-1])
        if length > max(_LONGEST, len(text)):
            raise ValueError("a $ whose variables are more than any value has")
    return "".join(parts), at


def _stands_for(name: str, variables: Variables, plain: bool) -> str:
    return variables.value(name) or "" if plain else variables.text(name)


def _expanded(name: str, operator: str, word: str, variables: Variables, plain: bool) -> str:
    value = variables.value(name)
    is_there = value is not None and (value != "" or not operator.startswith(":"))
    if operator.endswith("+"):
        return word if is_there else ""
    return word if operator.endswith("-") and not is_there else _stands_for(name, variables, plain)
