"""The entry point of `scylla-cdc`: picks the command, sets up output and logging, turns errors into exit statuses.

0: done, 1: failed, 2: wrong use or configuration, 130: interrupted. Commands are imported only when asked for, so that
help and errors come at once. Some come with the embedded servers, which are a distribution of their own.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
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
from connector.cli.early_signals import command_name, heed_signals
from connector.cli.last_resort import END_SECONDS, LastResort, leave
from connector.cli.logs import FORMATS, filter_stderr, set_up_logging
from connector.cli.output import CollectedOutput, ConsoleOutput, JsonOutput, Output
from connector.cli.quick_imports import quick_imports
from connector.errors import CdcError, ConfigurationError, Problem, UsageError
from connector.secrets import scrub

COMMANDS = {
    "demo": "run the whole pipeline once on this machine and verify the result",
    "validate": "check a connector's configuration and report every problem",
    "migrate": "make this service's files of a Kafka Connect user's, and say what becomes of each line",
    "run": "run a connector in the foreground",
    "status": "show state, lag and last error of a connector's tables and workers",
    "offsets": "show, reset or import a stopped connector's positions",
    "snapshot": "begin, stop, pause, resume or show snapshots of a connector that runs",
    "read": "print the changes of a table as JSON lines, without Kafka",
    "transform": "apply a message transform to JSON lines",
    "land": "land the changes in a lakehouse with Spark",
    "verify": "compare landed tables with their source",
    "backfill": "land a snapshot of the rows that are older than the log",
    "maintain": "purge merged changes and compact the landed tables",
    "embedded": "run the embedded servers in the foreground; record and replay servers; test a cluster",
}
# Where those are that `pip install 'scylla-cdc[embedded]'` brings.
_EXTRA = {"demo": "embedded.demo.command", "embedded": "embedded.commands.embedded"}
# What `pip install 'scylla-cdc[spark]'` brings: whoever lands imports it when he is asked to.
_OF_SPARK = ("pyspark", "delta", "pandas", "pyarrow")
_LIMITS = "see the limits of memory and of processes (ulimit -v and -u, those of the container)"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    heed_signals(given)
    _open_what_is_closed()
    filter_stderr()
    last_resort = LastResort(END_SECONDS, status=1)
    ended_with: list[int] = []
    atexit.register(_end, ended_with)
    # Threads and clients that libraries keep are waited for, or closed, by the interpreter: that may hang, too.
    with last_resort.behind():
        status = last_resort.status = run(given)
        try:
            sys.stdout.flush()
        except OSError:
            # Nobody reads it any more, or its disk is full, which was said where it was written.
            _forget_stdout()
    ended_with.append(status)
    sys.exit(status)


def _end(status: list[int]) -> None:
    """Registered first, so done last of all that is done at exit; ``status``: if that is known.

    What the interpreter does behind it is for nobody: it frees memory. Clients of servers that are away hang in it,
    where no thread of ours runs any more that could end the process with its status.
    """
    if status:
        leave(status[0])


def run(arguments: list[str]) -> int:
    """The exit status of a command line. Prints, but never raises for anything a user can cause."""
    output: Output = JsonOutput() if "--json" in arguments else ConsoleOutput()
    debug = "--debug" in arguments
    try:
        parser, command = _parser(arguments)
        args = parser.parse(arguments)
        set_up_logging(args.log_format, debug=args.debug)
        if args.log_format == "json" and isinstance(output, ConsoleOutput):
            output = CollectedOutput()
        if command is None:
            parser.print_help()
            return 2
        return command.run(args, output)
    except ConfigurationError as error:
        _trace(debug)
        for notice in error.notices:
            output.note(notice)
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
    except MemoryError:
        _trace(debug)
        output.error(f"there is not enough memory: {_LIMITS}")
        return 1
    except Exception as error:
        _trace(debug)
        if isinstance(error, RuntimeError) and "start new thread" in str(error):
            output.error(f"no thread can be started: {_LIMITS}")
            return 1
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _OF_SPARK:
            hint = "pip install 'scylla-cdc[spark]', or the image for landing"
            name = command_name(arguments) or "scylla-cdc"
            output.problems([Problem(name, f"needs {error.name}, which is not installed", None, hint)])
            return 2
        hint = "" if debug else " (--debug shows where)"
        output.error(f"unexpected {type(error).__name__}: {error}{hint}")
        return 1


def available() -> dict[str, str]:
    """The commands that are installed, with their one-line descriptions."""
    extra = find_spec("embedded") is not None
    return {name: text for name, text in COMMANDS.items() if extra or name not in _EXTRA}


def parser_of(name: str) -> Parser:
    """The parser of one command; the page of all commands is written from it."""
    parser, _ = _parser([name])
    return next(each for each in parser.family() if each.prog == f"{parser.prog} {name}")


def _load(name: str) -> Command:
    with quick_imports():
        return cast(Command, import_module(_EXTRA.get(name, f"connector.cli.{name}")).COMMAND)


def _parser(arguments: list[str]) -> tuple[Parser, Command | None]:
    """The parser for this command line: every command by name, the one asked for with its arguments."""
    parser = Parser(
        prog="scylla-cdc",
        description="Streams the changes of ScyllaDB tables to Kafka, exactly once, and lands them.",
        epilog="'scylla-cdc COMMAND --help' describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"scylla-cdc {__version__}")
    _add_global_options(parser, defaults=True)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    wanted = command_name(arguments)
    if wanted in _EXTRA and wanted not in available():
        hint = "pip install 'scylla-cdc[embedded]'"
        raise UsageError([Problem(wanted, "comes with the embedded servers, which are not installed", None, hint)])
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
        help="format of log lines on stderr",
        default=FORMATS[0] if defaults else argparse.SUPPRESS,
    )


def _trace(debug: bool) -> None:
    if debug:
        sys.stderr.write(scrub(traceback.format_exc()))


def _open_what_is_closed() -> None:
    """Who starts us without stdin, stdout or stderr (`>&-`) wants to hear nothing there. Python has None for them, and
    the next file or connection would get their number, and what is written to them."""
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(number, True)
        os.close(number)
    for name, mode, stream in (("stdin", "r", sys.stdin), ("stdout", "w", sys.stdout), ("stderr", "w", sys.stderr)):
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (as long as the process)


def _forget_stdout() -> None:
    # The interpreter flushes stdout once more when it ends, and would complain about the same broken pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
