"""`scylla-cdc validate`: everything that is wrong with a connector's and a worker's configuration, in one answer.

Checks the files, then, unless `--offline`, asks ScyllaDB, Kafka and the Schema Registry. Status 0: valid, 2: not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.output import Output
from connector.config import Configuration
from connector.config.catalogue import CONNECTOR, WORKER_BY_NAME
from connector.errors import ConfigurationError, Problem

LiveCheck = Callable[[Configuration], Sequence[Problem]]

#: The room that may open connections offers ``live_problems(configuration) -> Sequence[Problem]`` there.
_LIVE_CHECKS = "connector.worker.checks"


class ValidateCommand:
    name = "validate"
    help = "check a connector's configuration and name every problem"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_configuration_arguments(parser)
        parser.add_argument("--offline", action="store_true", help="open no connection")
        parser.add_argument("--json", action="store_true", help="the answer as JSON: valid, problems")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        configuration = load_configuration(args)
        for notice in configuration.notices:
            print(f"note: {notice}", file=sys.stderr)
        live = None if args.offline else _live_check()
        problems = live(configuration) if live else ()
        if problems:
            raise ConfigurationError([_placed(problem, args) for problem in problems])
        tables = len(configuration.connector.reading.tables)
        scope = "" if live else ", no connection was opened"
        text = (
            f"valid: connector {configuration.connector.name}, {tables} {'table' if tables == 1 else 'tables'}{scope}"
        )
        output.result({"valid": True, "problems": []}, text)
        return 0


def _placed(problem: Problem, args: argparse.Namespace) -> Problem:
    """What a server objects to is mended in a file: the one that the property belongs to."""
    if problem.file is not None:
        return problem
    of_worker = problem.property in WORKER_BY_NAME and problem.property not in CONNECTOR
    file = args.worker if of_worker else args.config
    return replace(problem, file="worker" if file is None else str(file))


def _live_check() -> LiveCheck | None:
    if find_spec(_LIVE_CHECKS) is None:
        return None
    check: LiveCheck = import_module(_LIVE_CHECKS).live_problems
    return check


COMMAND = ValidateCommand()
