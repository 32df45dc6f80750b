"""The configuration files of a command line, loaded with everything that can be checked without a connection.

In: the parsed arguments. Out: a ``Configuration``, or one for each connector of the line; all problems at once as
``ConfigurationError``. Commands that take a connector's configuration share the arguments and the loading here.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from connector.config import Configuration, Document, Source, is_worker_document, load, of_kind, read_documents
from connector.errors import ConfigurationError, Problem

_NOWHERE = {"scylla.cluster.ip.addresses": "localhost:9042"}


def add_configuration_arguments(parser: argparse.ArgumentParser) -> None:
    """``CONFIG`` and ``--worker``."""
    parser.add_argument("config", type=Path, metavar="CONFIG.json", help="the connector's configuration")
    _add_worker(parser)


def add_configurations_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """``CONFIG…`` as for `connect-standalone`, a worker's file first or behind ``--worker``."""
    parser.add_argument(
        "config",
        type=Path,
        nargs="+" if required else "*",
        metavar="CONFIG.json",
        help="a connector's configuration, or several; the worker's file may come first, as for connect-standalone"
        + ("" if required else "; without any, connectors are given by POST to --http-port"),
    )
    _add_worker(parser)


def _add_worker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--worker", type=Path, metavar="W.json", help="the worker's properties")


def load_configuration(args: argparse.Namespace) -> Configuration:
    """The configuration that the arguments name; ``CONNECT_…`` variables override the worker's file."""
    return _load(args.config, args.worker, args.config)


def load_configurations(args: argparse.Namespace) -> list[tuple[str, Configuration]]:
    """Each connector of the line, with the name of its file; ``args.worker`` is the worker's, wherever it stood."""
    return [(document.file, configuration) for document, configuration in _loaded(args)]


def load_to_run(args: argparse.Namespace) -> tuple[list[Configuration], Callable[[str], Configuration | None]]:
    """The same for who runs them, and what loads one once more, by its name: as its file was now, which may have been a
    pipe, with what its references name by then."""
    loaded = _loaded(args)
    written = {configuration.connector.name: dict(document.written) for document, configuration in loaded}
    configurations = [configuration for _, configuration in loaded]
    return configurations, lambda name: load_beside(written[name], args.worker) if name in written else None


def _loaded(args: argparse.Namespace) -> list[tuple[Document, Configuration]]:
    files = list(args.config)
    documents = [read_documents(file, "connector") for file in files]
    if args.worker is None and len(files) > 1 and all(map(is_worker_document, documents[0])):
        args.worker, documents = files[0], documents[1:]
    for file, some in zip(args.config, documents, strict=False):
        # A Deployment and its ConfigMap, say.
        if args.worker is None and any(map(is_worker_document, some)) and not all(map(is_worker_document, some)):
            args.worker = file
    documents = [of_kind(some, worker=False) for some in documents]
    found: list[tuple[Document, Configuration]] = []
    problems: list[Problem] = []
    notices: list[str] = []
    for document in (each for some in documents for each in some):
        try:
            found.append((document, _load(document, args.worker, document.file)))
        except ConfigurationError as error:
            problems += error.problems
            notices += error.notices
    problems += _doubled(found)
    if problems:
        notices += (notice for _, configuration in found for notice in configuration.notices)
        raise ConfigurationError(dict.fromkeys(problems), notices)
    return found


def definitions(args: argparse.Namespace) -> list[dict[str, str]]:
    """The properties of each connector of the line, as they are written: what would be sent to define it."""
    files = [of_kind(read_documents(file, "connector"), worker=False) for file in args.config]
    return [dict(each.texts) for documents in files for each in documents if not is_worker_document(each)]


def load_beside(config: Mapping[str, str], worker: Path | None) -> Configuration:
    """A connector that came through the API, beside a worker's file."""
    return _load(dict(config), worker, "connector")


def load_worker(worker: Path | None) -> Configuration:
    """What a worker's file says, where there is no connector yet: as if there were one that nobody runs."""
    return load({"name": "none", "topic.prefix": "none", "scylla.table.names": "none.none", **_NOWHERE}, worker)


def problems_of(config: Mapping[str, str], worker: Path | None) -> Sequence[Problem]:
    """All that is wrong with a connector's properties beside a worker's file."""
    try:
        load_beside(config, worker)
    except ConfigurationError as error:
        return error.problems
    return ()


def _doubled(found: Sequence[tuple[Document, Configuration]]) -> list[Problem]:
    names = Counter(configuration.connector.name for _, configuration in found)
    text = "Another connector of this command line has the same name, hence the same positions"
    return [
        Problem("name", text, configuration.connector.name, "a name for each connector", document.file)
        for document, configuration in found
        if names[configuration.connector.name] > 1
    ]


def _load(source: Source, worker: Path | None, file: object) -> Configuration:
    from connector.formats import check_transform

    configuration = load(source, worker, transform_check=check_transform)
    notices = (*configuration.notices, *_losses(file, configuration), *_defaults(worker, configuration))
    return configuration.but(notices=notices)


def _defaults(file: Path | None, configuration: Configuration) -> list[str]:
    """Who forgets `--worker` should not look for the reason in a broker that does not answer."""
    elsewhere = "producer.override.bootstrap.servers" in configuration.connector.given
    if "bootstrap.servers" in configuration.worker.given or elsewhere:
        return []
    where = "there is no worker file" if file is None else f"{file} has no bootstrap.servers"
    address = configuration.worker.bootstrap_servers
    return [f"{where}, so Kafka is {address}, the default (--worker W.json, or CONNECT_BOOTSTRAP_SERVERS)"]


def _losses(file: object, configuration: Configuration) -> list[str]:
    """What the transforms, as configured, lose of the changes."""
    from connector.formats import output_chain

    chain = output_chain(configuration.connector.output)
    return [f"{file}: {loss}" for loss in chain.losses] if chain else []
