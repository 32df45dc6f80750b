"""Renders a recorded terminal session as `docs/demo.svg`: what stands on the terminal when the session has ended.

In: a recording made by `script -q -c 'scylla-cdc demo' demo.typescript`, in a terminal of 60 columns. Out: an SVG.
`python docs/picture.py demo.typescript docs/demo.svg`
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 66
_PIECE = re.compile(r"\x1b\[(?P<value>[?\d;]*)(?P<kind>[A-Za-z])|(?P<plain>\r|\n|[^\x1b\r\n]+)")


def screen(recording: str) -> list[str]:
    """The lines at the end, colours kept. Lines are redrawn as wholes, so no column has to be counted."""
    lines, at = [""], 0
    for piece in _PIECE.finditer(recording):
        kind, plain = piece["kind"], piece["plain"]
        if plain == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif plain is not None and plain != "\r":
            lines[at] += plain
        elif kind == "m":
            lines[at] += piece[0]
        elif kind == "A":
            at = max(0, at - int(piece["value"] or 1))
        elif kind == "K":
            lines[at] = ""
    return lines


def main(recording: Path, picture: Path) -> None:
    text = recording.read_bytes().decode(errors="replace")
    # `script` puts a line of its own before and behind. Carriage returns count, so no text mode.
    text = re.sub(r"^Script (started|done).*\n?", "", text, flags=re.MULTILINE)
    console = Console(record=True, width=WIDTH, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(Text("$ scylla-cdc demo", style="bold"))
    for line in "\n".join(screen(text)).strip("\n").split("\n"):
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="scylla-cdc demo")
    # The reader's own monospaced font, instead of one from the network.
    picture.write_text(re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
