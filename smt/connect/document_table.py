"""The tables of ``docs/smt.md``: every transform of Connect and Debezium with its options, from the declarations.

``python -m smt.connect.document_table`` prints them.
"""

from __future__ import annotations

from collections.abc import Iterable

from smt.connect.declared import Declared
from smt.connect.options import REQUIRED, Option
from smt.connect.predicates import PREDICATES
from smt.connect.registry import ALL


def tables() -> str:
    """The text between the page's markers."""
    lines = ["| transform | does | options |", "|---|---|---|"]
    lines += [f"| {_name(each)} | {each.doc} | {_options(each.options)} |" for each in sorted(ALL, key=_short)]
    lines += ["", "| predicate | true for | options |", "|---|---|---|"]
    known = {each.name: each for each in PREDICATES.values()}
    lines += [f"| `{each.name}` | {each.doc} | {_options(each.options)} |" for each in known.values()]
    return "\n".join(lines) + "\n"


def _short(declared: Declared) -> str:
    return declared.name


def _name(declared: Declared) -> str:
    return f"`{declared.name}$Key`, `{declared.name}$Value`" if declared.sided else f"`{declared.name}`"


def _options(options: Iterable[Option]) -> str:
    texts = []
    for option in options:
        default = option.default
        if default is REQUIRED:
            note = " (required)"
        elif default in (None, "", ()):
            note = ""
        else:
            note = f" (`{str(default).lower() if isinstance(default, bool) else default}`)"
        texts.append(f"`{option.name}`{note}: {option.doc}")
    return "<br>".join(texts).replace("|", "\\|")


if __name__ == "__main__":
    print(tables(), end="")
