"""``docs/commands.md``, written from the parsers.

``python -m connector.cli.document_page > docs/commands.md``
In: every command's parser. Out: Markdown. A test compares the page in the tree with what this writes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from connector.cli.command import Parser
from connector.cli.main import available, parser_of

_HEAD = """# Commands

<!-- Written by `python -m connector.cli.document_page`; a test compares. -->

`scylla-cdc COMMAND --help` shows the same. Exit statuses: 0 done, 1 failed, 2 wrong use or configuration (all problems
are reported at once), 130 interrupted. Everywhere, before or behind the command's name:

| option | |
|---|---|
| `--json` | results as JSON, one document on stdout |
| `--debug` | debug logging, and tracebacks with errors |
| `--log-format {human,json}` | format of log lines, on stderr |
| `--version` | the version |

Times are ISO 8601 (with a zone), milliseconds since 1970, or relative to now: `-1h`, `-30m`.
"""
_EVERYWHERE = {"--json", "--debug", "--log-format", "--help"}


def page() -> str:
    parts = [_HEAD]
    for name in available():
        for parser in parser_of(name).family():
            parts.append("".join(_section(parser)))
    return "\n".join(parts)


def _section(parser: Parser) -> Iterator[str]:
    depth = "#" * min(4, len(parser.prog.split()))
    yield f"{depth} {parser.prog.removeprefix('scylla-cdc ')}\n\n"
    yield f"    {_usage(parser)}\n"
    if parser.description:
        yield f"\n{_one_line(parser.description)}\n"
    rows = [row for action in parser._actions if (row := _row(parser, action)) is not None]
    if rows:
        yield "\n| | |\n|---|---|\n" + "".join(f"{row}\n" for row in rows)


def _usage(parser: Parser) -> str:
    parts = [parser.prog]
    options = [each for each in _own(parser) if each.option_strings]
    parts += [f"{each.option_strings[0]}{_value(parser, each)}" for each in options if each.required]
    if any(not each.required for each in options):
        parts.append("[options]")
    for each in _own(parser):
        if not each.option_strings:
            shown = _shown(parser, each)
            parts.append({"+": f"{shown}…", "*": f"[{shown}…]", "?": f"[{shown}]"}.get(str(each.nargs), shown))
    return " ".join(parts)


def _row(parser: Parser, action: argparse.Action) -> str | None:
    if action not in _own(parser) or isinstance(action, argparse._SubParsersAction):
        return None
    if action.option_strings:
        names = ", ".join(action.option_strings) + _value(parser, action)
    else:
        names = _shown(parser, action)
    help_text = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"| `{names}` | {_one_line(help_text).replace('|', chr(92) + '|')} |"


def _own(parser: Parser) -> list[argparse.Action]:
    """Those that are of this command alone; its texts for the common ones are told at the top."""
    return [
        action
        for action in parser._actions
        if action.help is not argparse.SUPPRESS and not _EVERYWHERE & set(action.option_strings)
    ]


def _value(parser: Parser, action: argparse.Action) -> str:
    return "" if action.nargs == 0 else f" {_shown(parser, action)}"


def _shown(parser: Parser, action: argparse.Action) -> str:
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.stdout.write(page())
