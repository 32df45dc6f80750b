"""The two configuration files of a command line, loaded with everything that can be checked without a connection.

In: the parsed arguments. Out: a ``Configuration``; all problems at once as ``ConfigurationError``. Commands that take a
connector's configuration share the arguments and the loading here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from connector.config import Configuration, load


def add_configuration_arguments(parser: argparse.ArgumentParser) -> None:
    """``CONFIG.json`` and ``--worker``."""
    parser.add_argument("config", type=Path, metavar="CONFIG.json", help="the connector's configuration")
    parser.add_argument("--worker", type=Path, metavar="W.json", help="the worker's properties")


def load_configuration(args: argparse.Namespace) -> Configuration:
    """The configuration that the arguments name; ``CONNECT_…`` variables override the worker's file."""
    from connector.formats import check_transform

    configuration = load(args.config, args.worker, transform_check=check_transform)
    return configuration.but(notices=(*configuration.notices, *_losses(args.config, configuration)))


def _losses(file: Path, configuration: Configuration) -> list[str]:
    """What the transforms, as configured, lose of the changes."""
    from connector.formats import build_transforms

    output = configuration.connector.output
    schemaless = output.value_converter.kind == "json" and not output.value_converter.schemas_enable
    chain = build_transforms(output.transforms, schemaless, output.strict)
    return [f"{file}: {loss}" for loss in chain.losses] if chain else []
