"""How `make test` shares the tests out to its processes: what keeps the cores busy runs beside what mostly waits.

In: the collected tests. Out: Spark's as two portions, the demo's as another (each of them takes a folder that only one
demo can have), and files whose tests share a broker of their own; then one by one those that wait for processes,
sessions and polls; then every other file by itself. What takes long comes first. Without pytest-xdist's `-n` only the
order counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

_PORTIONS = {
    # So much that two processes end with Spark at about the same time.
    "some of spark": tuple(
        f"tests/spark_jobs/test_landing_{name}.py"
        for name in ("verify", "backfill", "published", "ddl", "snapshot", "cluster", "histories", "old_layout")
    ),
    "spark": ("tests/spark_jobs/", "tests/smt/test_smt_spark.py"),
    "demo": ("tests/docs/", "tests/cli/test_cli_demo.py", "tests/cli/test_cli_embedded.py"),
    # Each with a broker to be mistreated: one by one, these tests would start it in every process.
    **{
        file: (file,)
        for file in (
            "tests/delivery/test_delivery_hanging_transactions.py",
            "tests/delivery/test_delivery_spent.py",
            "tests/delivery/test_delivery_transaction.py",
            "tests/worker/test_worker_waits.py",
        )
    },
}

# Each test by itself: they have nothing in common but the session's servers, and none of them may be the last one.
_WAITING = (
    "tests/worker/test_worker_",
    "tests/delivery/test_delivery_",
    "tests/test_tools.py",
)


def portion(nodeid: str) -> str:
    """What a test is handed out together with.

    >>> portion("tests/spark_jobs/test_a.py::test_b[x::y]"), portion("tests/smt/test_a.py::test_b")
    ('spark', 'tests/smt/test_a.py')
    >>> portion("tests/worker/test_worker_run.py::test_b[x::y]")
    'tests/worker/test_worker_run.py::test_b[x::y]'
    >>> portion("tests/delivery/test_delivery_hanging_transactions.py::test_b")
    'tests/delivery/test_delivery_hanging_transactions.py'
    """
    file = nodeid.split("::", 1)[0]
    alone = nodeid if file.startswith(_WAITING) else file
    return next((name for name, files in _PORTIONS.items() if file.startswith(files)), alone)


def _turn(nodeid: str) -> int:
    names = list(_PORTIONS)
    if (name := portion(nodeid)) in names:
        return names.index(name)
    return len(names) if name == nodeid else len(names) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long portions come first: what is handed out last must not be what everybody waits for."""
    items.sort(key=lambda item: _turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class Portions(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return portion(nodeid)

    config.option.loadscopereorder = False
    return Portions(config, log)
