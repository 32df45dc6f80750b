"""The two configuration files of a command line, loaded with everything that can be checked without a connection.

In: the parsed arguments. Out: a ``Configuration``; all problems at once as ``ConfigurationError``. Commands that take a
connector's configuration share the arguments and the loading here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from connector.config import Configuration, TransformProblem, TransformSpec, load


def add_configuration_arguments(parser: argparse.ArgumentParser) -> None:
    """``CONFIG.json`` and ``--worker``."""
    parser.add_argument("config", type=Path, metavar="CONFIG.json", help="the connector's configuration")
    parser.add_argument("--worker", type=Path, metavar="W.json", help="the worker's properties")


def load_configuration(args: argparse.Namespace) -> Configuration:
    """The configuration that the arguments name; ``CONNECT_…`` variables override the worker's file."""
    configuration = load(args.config, args.worker, transform_check=check_transform)
    return replace(configuration, notices=(*configuration.notices, *_losses(args.config, configuration)))


def check_transform(spec: TransformSpec, schemaless: bool) -> Sequence[TransformProblem]:
    """What the ScyllaDB transforms themselves say of their options."""
    from smt import SmtOptionError, build_transform

    try:
        build_transform(spec.type, spec.options, schemaless_output=schemaless)
    except SmtOptionError as error:
        return [TransformProblem(found.option, found.problem, found.suggestion) for found in error.problems]
    return []


def _losses(file: Path, configuration: Configuration) -> list[str]:
    """What the transforms, as configured, lose of the changes."""
    from smt import TYPES, build_transform

    converter = configuration.connector.output.value_converter
    schemaless = converter.kind == "json" and not converter.schemas_enable
    return [
        f"{file}: transforms.{spec.alias}: {loss}"
        for spec in configuration.connector.output.transforms
        if spec.type in TYPES
        for loss in build_transform(spec.type, spec.options, schemaless_output=schemaless).losses
    ]
