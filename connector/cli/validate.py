"""`scylla-cdc validate`: everything that is wrong with a connector's and a worker's configuration, in one answer.

Checks the files, then, unless `--offline`, asks ScyllaDB, Kafka and the Schema Registry. Status 0: valid, 2: not.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from connector.cli.configuration import add_configurations_arguments, load_configurations
from connector.cli.output import Output
from connector.cli.quick_imports import quick_imports, without_numpy
from connector.config import CONNECTOR, WORKER_BY_NAME, Configuration, unlike_java
from connector.errors import ConfigurationError, Problem


class ValidateCommand:
    name = "validate"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_configurations_arguments(parser)
        parser.add_argument(
            "--offline",
            action="store_true",
            help="do not connect to any server (but to stores of secrets that a file refers to)",
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON: valid, problems")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        configurations = load_configurations(args)
        unlike = [f"{file}: {text}" for file, each in configurations for text in unlike_java(each)]
        for notice in dict.fromkeys((*unlike, *(notice for _, each in configurations for notice in each.notices))):
            output.note(notice)
        if not args.offline:
            with quick_imports(), without_numpy():
                from connector.worker.checks import live_problems

            problems = [
                _placed(problem, file, args.worker)
                for file, configuration in configurations
                for problem in live_problems(configuration)
            ]
            if problems:
                raise ConfigurationError(dict.fromkeys(problems))
        scope = ", no connection was opened" if args.offline else ""
        text = "; ".join(_valid(configuration) for _, configuration in configurations)
        output.result({"valid": True, "problems": []}, f"valid: {text}{scope}")
        return 0


def _valid(configuration: Configuration) -> str:
    tables = len(configuration.connector.reading.tables)
    return f"connector {configuration.connector.name}, {tables} {'table' if tables == 1 else 'tables'}"


def _placed(problem: Problem, connector: str, worker: Path | None) -> Problem:
    """What a server objects to is mended in a file: the one that the property belongs to."""
    if problem.file is not None:
        return problem
    of_worker = problem.property in WORKER_BY_NAME and problem.property not in CONNECTOR
    file = worker if of_worker else connector
    return replace(problem, file="worker" if file is None else str(file))


COMMAND = ValidateCommand()
