"""What a command is to the frame, and the parser that all commands share.

A module `connector/cli/<name>.py` holds one command and offers it as its `COMMAND`. The frame imports the module only
when the command is the one that was asked for.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn, Protocol

from connector.cli.moments import RELATIVE
from connector.cli.output import Output
from connector.errors import Problem, UsageError
from connector.suggestions import did_you_mean

#: How many commands are named that have an option which another one has not.
_MOST_OWNERS = 3


class Command(Protocol):
    """One command. `name` is what the user types; what it does in one line is in the table of `connector/cli/main.py`.

    `add_arguments` declares options and positionals on the command's own parser; it must stay cheap, imports that cost
    time belong into `run`. `run` does the work and returns the exit status: 0 done, 1 failed, 2 wrong use. It raises
    errors of `connector.errors` instead of printing them; the frame turns them into messages and statuses.
    """

    @property
    def name(self) -> str: ...

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, output: Output) -> int: ...


def likely(given: str, known: Collection[str]) -> str | None:
    """A hint at the likely intended word of a command line, which people also shorten."""
    begun = [name for name in known if len(given) > 1 and name.startswith(given)]
    return did_you_mean(given, known, 0.6) or (f"did you mean {begun[0]}?" if begun else None)


def _joined(arguments: list[str]) -> list[str]:
    """`--from -1h` as `--from=-1h`: argparse would take the time for an option."""
    joined: list[str] = []
    for item in arguments:
        if joined and re.fullmatch(r"--[a-z][a-z-]*", joined[-1]) and RELATIVE.fullmatch(item):
            joined[-1] += f"={item}"
        else:
            joined.append(item)
    return joined


class Parser(argparse.ArgumentParser):
    """Raises `UsageError` instead of ending the process, suggests spellings, accepts no abbreviated options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UsageError([Problem(self.prog, message, suggestion=f"see {self.prog} --help", file="command line")])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        name = "/".join(action.option_strings) or (action.metavar if isinstance(action.metavar, str) else action.dest)
        hint = likely(str(value), known) or f"one of {', '.join(known)}"
        raise UsageError([Problem(name, "unknown", value=str(value), suggestion=hint, file="command line")])

    def family(self) -> list[Parser]:
        """This parser, the parsers of its sub-commands, and theirs."""
        found = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in dict.fromkeys(action.choices.values()):
                    found += parser.family()
        return found

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        """Parses all of the arguments; unknown ones are reported together, each with a suggestion."""
        args, unknown = self.parse_known_args(_joined(arguments))
        if unknown:
            family = self.family()
            raise UsageError(_unknown(item, family) for item in unknown)
        return args


def _unknown(item: str, family: Sequence[Parser]) -> Problem:
    name = item.partition("=")[0]
    if not item.startswith("-"):
        return Problem(name, "unexpected argument", file="command line")
    owners = [parser.prog for parser in family if name in parser._option_string_actions]
    if owners:
        named = ", ".join(owners[:_MOST_OWNERS])
        return Problem(name, "no option of this command", suggestion=f"one of {named}", file="command line")
    known = {text for parser in family for text in parser._option_string_actions}
    return Problem(name, "unknown option", suggestion=likely(name, known), file="command line")
