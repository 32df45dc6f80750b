"""scylla-cdc for programs: the changes of ScyllaDB tables, the record transforms, sessions over landed tables.

    import scylla_cdc

    for change in scylla_cdc.changes("127.0.0.1:9042", "shop.orders"):
        print(change.operation, change.key, change.values)

What is listed in ``__all__`` is the public interface; everything else may change with any release.
"""

from __future__ import annotations

from typing import Any

from connector import __version__
from connector.changes import CollectionDelta
from connector.errors import CdcError, RetriableSourceError
from scylla_cdc.change import Bound, Change, Operation
from scylla_cdc.reader import ChangeReader, changes
from smt import Record, SmtError, Transform, build_transform

__all__ = [
    "Bound",
    "CdcError",
    "Change",
    "ChangeReader",
    "CollectionDelta",
    "Operation",
    "Record",
    "RetriableSourceError",
    "SmtError",
    "Transform",
    "__version__",
    "build_transform",
    "changes",
    "open_session",
]


def open_session(config: dict[str, Any]) -> Any:
    """A SparkSession in which landed tables are read by name: ``open_session({...}).table("shop.orders")``.

    ``config`` is a landing configuration, of which ``warehouse`` and ``tables`` are needed; ``spark.*`` is passed on.
    Needs the extra ``scylla-cdc[spark]``.
    """
    try:
        from spark_jobs.session import open_session
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in ("pyspark", "delta"):
            raise CdcError(f"{error.name} is not installed: pip install 'scylla-cdc[spark]'") from None
        raise
    return open_session(config)
