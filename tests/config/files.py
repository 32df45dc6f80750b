"""Configurations that the tests of this room start from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connector.config import Configuration, Document, Source, TransformCheck, load, read_documents
from connector.errors import ConfigurationError, Problem

STORES = Path(__file__).parent / "stores"
CLASS = "com.scylladb.cdc.debezium.connector.ScyllaConnector"

CONNECTOR: dict[str, Any] = {
    "name": "orders",
    "scylla.cluster.ip.addresses": "127.0.0.1:9042",
    "scylla.table.names": "shop.orders",
    "topic.prefix": "shop",
}
WORKER: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:9092",
    "group.id": "workers",
    "offset.storage.topic": "positions",
}


def read(folder: Path, name: str, content: str, **environ: str) -> list[Document]:
    """What a file of that name and content holds."""
    path = folder / name
    path.write_text(content)
    return read_documents(path, "file", environ)


def validate(
    connector: Source, worker: Source | None, environ: Mapping[str, str], transform_check: TransformCheck | None = None
) -> list[Problem]:
    """The problems for which the files are refused; none if they are taken."""
    try:
        load(connector, worker, environ, transform_check=transform_check)
    except ConfigurationError as error:
        return list(error.problems)
    return []


def loaded(
    connector: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> Configuration:
    return load({**CONNECTOR, **(connector or {})}, {**WORKER, **(worker or {})}, environ or {})


def problems(
    connector: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> list[Problem]:
    return validate({**CONNECTOR, **(connector or {})}, {**WORKER, **(worker or {})}, environ or {})


def problem(
    connector: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> Problem:
    """The only problem there is."""
    found = problems(connector, worker, environ)
    assert len(found) == 1, found
    return found[0]
