"""How Spark works on little data: the plan as it is, not compiled, and not thought over.

In: a session that is nobody else's at the time. Out: settings that hold within a context. For a handful of rows, making
and compiling code costs many times what running it saves; and Java, which compiles what comes often, has less to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

_UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_PLANNED_ONCE = {"spark.sql.adaptive.enabled": "false"}
FEW_ROWS = {**_UNCOMPILED, **_PLANNED_ONCE}
"""Of a session that never sees more than some thousand."""


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """What was set before is set again, and what was not is not."""
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, kept in before.items():
            if kept is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, kept)


@contextmanager
def uncompiled(session: SparkSession, few: bool = True) -> Iterator[None]:
    """Plans of ``few`` rows are run as they are; others as ever."""
    with configured(session, _UNCOMPILED if few else {}):
        yield


@contextmanager
def planned_once(session: SparkSession) -> Iterator[None]:
    """Plans are not thought over after each of their stages, which is a good part of what few changes cost."""
    with configured(session, _PLANNED_ONCE):
        yield
