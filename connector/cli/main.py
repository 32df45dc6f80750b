"""The entry point of `scylla-cdc`: picks the command, sets up output and logging, turns errors into exit statuses.

0: done, 1: failed, 2: wrong use or configuration, 130: interrupted. Commands are imported only when asked for, so that
help and errors come at once; a command of the table below appears as soon as its module exists.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn, cast

from connector import __version__
from connector.cli.command import Command, Parser
from connector.cli.logs import FORMATS, set_up_logging
from connector.cli.output import ConsoleOutput, JsonOutput, Output
from connector.errors import CdcError, ConfigurationError

COMMANDS = {
    "demo": "the whole way on one machine",
    "validate": "check a connector's configuration and name every problem",
    "run": "run a connector in the foreground",
    "status": "state, lag and last error of a connector's tables and workers",
    "offsets": "show, reset or import a stopped connector's positions",
    "read": "the changes of a table as JSON lines, without Kafka",
    "transform": "apply a message transform to JSON lines",
    "land": "land topics in the lakehouse",
    "verify": "compare landed tables with their source",
    "backfill": "land the rows a table had before its log",
    "maintain": "compact and clean up landed tables",
    "embedded": "run the embedded servers in the foreground",
}
_OPTIONS_WITH_VALUE = {"--log-format"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGTERM, _end_in_order)
    status = run(given)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """The exit status of a command line. Prints, but never raises for anything a user can cause."""
    output: Output = JsonOutput() if "--json" in arguments else ConsoleOutput()
    debug = "--debug" in arguments
    try:
        parser, command = _parser(arguments)
        args = parser.parse(arguments)
        set_up_logging(args.log_format, debug=args.debug)
        if command is None:
            parser.print_help()
            return 2
        return command.run(args, output)
    except ConfigurationError as error:
        _trace(debug)
        output.problems(error.problems)
        return 2
    except CdcError as error:
        _trace(debug)
        output.error(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our results has seen enough, as in `scylla-cdc read … | head`.
        _forget_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        # A folder that cannot be written, a disk that is full: the system's words say it best.
        _trace(debug)
        output.error(f"{error.strerror}: {error.filename}" if error.filename else str(error))
        return 1
    except Exception as error:
        _trace(debug)
        hint = "" if debug else " (--debug shows where)"
        output.error(f"unexpected {type(error).__name__}: {error}{hint}")
        return 1


def available() -> dict[str, str]:
    """The commands whose modules exist, with their one-line descriptions."""
    return {name: text for name, text in COMMANDS.items() if find_spec(f"connector.cli.{name}") is not None}


def _load(name: str) -> Command:
    return cast(Command, import_module(f"connector.cli.{name}").COMMAND)


def _parser(arguments: list[str]) -> tuple[Parser, Command | None]:
    """The parser for this command line: every command by name, the one asked for with its arguments."""
    parser = Parser(
        prog="scylla-cdc",
        description="Streams the changes of ScyllaDB tables to Kafka, exactly once, and lands them.",
        epilog="'scylla-cdc COMMAND --help' tells about one command.",
    )
    parser.add_argument("--version", action="version", version=f"scylla-cdc {__version__}")
    _add_global_options(parser, defaults=True)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    wanted = _command_name(arguments)
    command = None
    for name, text in available().items():
        below = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == wanted:
            command = _load(name)
            command.add_arguments(below)
            for each in below.family():
                _add_global_options(each, defaults=False)
    return parser, command


def _add_global_options(parser: argparse.ArgumentParser, *, defaults: bool) -> None:
    """Before or behind the command's name; behind it they have no default, which would undo what stood before."""
    group = parser.add_argument_group("everywhere") if not defaults else parser
    # A command may give `--json` a help text of its own.
    own = parser._option_string_actions
    for flag, text in (("--json", "results as JSON"), ("--debug", "debug logging, and tracebacks with errors")):
        if flag not in own:
            default = False if defaults else argparse.SUPPRESS
            group.add_argument(flag, action="store_true", help=text, default=default)
    group.add_argument(
        "--log-format",
        choices=FORMATS,
        help="how log lines look on stderr",
        default=FORMATS[0] if defaults else argparse.SUPPRESS,
    )


def _command_name(arguments: list[str]) -> str | None:
    skip = False
    for item in arguments:
        if skip:
            skip = False
        elif item in _OPTIONS_WITH_VALUE:
            skip = True
        elif not item.startswith("-"):
            return item
    return None


def _trace(debug: bool) -> None:
    if debug:
        traceback.print_exc()


def _end_in_order(number: int, frame: object) -> NoReturn:
    """SIGTERM unwinds the stack, so that servers a command started are stopped and its files removed."""
    sys.exit(128 + number)


def _forget_stdout() -> None:
    # The interpreter flushes stdout once more when it ends, and would complain about the same broken pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
