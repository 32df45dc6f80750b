"""`scylla-cdc validate`: everything that is wrong with a connector's and a worker's configuration, in one answer.

Checks the files, then, unless `--offline`, asks ScyllaDB, Kafka and the Schema Registry. Status 0: valid, 2: not.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from connector.cli.configuration import add_configuration_arguments, load_configuration
from connector.cli.output import Output
from connector.config import CONNECTOR, WORKER_BY_NAME
from connector.errors import ConfigurationError, Problem


class ValidateCommand:
    name = "validate"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_configuration_arguments(parser)
        parser.add_argument("--offline", action="store_true", help="do not connect to any server")
        parser.add_argument("--json", action="store_true", help="print the result as JSON: valid, problems")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        configuration = load_configuration(args)
        for notice in configuration.notices:
            output.note(notice)
        if not args.offline:
            from connector.worker.checks import live_problems

            if problems := live_problems(configuration):
                raise ConfigurationError([_placed(problem, args) for problem in problems])
        tables = len(configuration.connector.reading.tables)
        scope = ", no connection was opened" if args.offline else ""
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


COMMAND = ValidateCommand()
