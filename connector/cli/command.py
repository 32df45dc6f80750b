"""What a command is to the frame, and the parser that all commands share.

A module `connector/cli/<name>.py` holds one command and offers it as its `COMMAND`. The frame imports the module only
when the command is the one that was asked for.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable
from typing import Any, NoReturn, Protocol

from connector.cli.output import Output
from connector.errors import Problem, UsageError


class Command(Protocol):
    """One command. `name` and `help` are what the user sees.

    `add_arguments` declares options and positionals on the command's own parser; it must stay cheap, imports that cost
    time belong into `run`. `run` does the work and returns the exit status: 0 done, 1 failed, 2 wrong use. It raises
    errors of `connector.errors` instead of printing them; the frame turns them into messages and statuses.
    """

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> str: ...

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace, output: Output) -> int: ...


def did_you_mean(given: str, known: Iterable[str]) -> str | None:
    """The likely intended spelling, as a suggestion for a `Problem`."""
    names = list(known)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.6) or [
        name for name in names if len(given) > 1 and name.startswith(given)
    ]
    return f"did you mean {close[0]}?" if close else None


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
        name = action.metavar if isinstance(action.metavar, str) else "/".join(action.option_strings) or action.dest
        hint = did_you_mean(str(value), known) or f"one of {', '.join(known)}"
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
        args, unknown = self.parse_known_args(arguments)
        if unknown:
            known = {text for parser in self.family() for text in parser._option_string_actions}
            raise UsageError(
                Problem(
                    item.partition("=")[0],
                    "unknown option" if item.startswith("-") else "unexpected argument",
                    suggestion=did_you_mean(item.partition("=")[0], known) if item.startswith("-") else None,
                    file="command line",
                )
                for item in unknown
            )
        return args
