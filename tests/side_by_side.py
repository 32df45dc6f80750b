"""How `make test` shares the tests out to two processes: what keeps the cores busy runs beside what mostly waits.

In: the collected tests. Out: Spark's as two portions, the demo's as another (each of them takes a folder that only one
demo can have), every other file by itself; the long portions first. Without pytest-xdist's `-n` only the order counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

_PORTIONS = {
    # So much that both processes end at about the same time.
    "some of spark": ("tests/spark_jobs/test_landing_verify.py",),
    "spark": ("tests/spark_jobs/", "tests/smt/test_smt_spark.py"),
    "demo": ("tests/docs/", "tests/cli/test_cli_demo.py", "tests/cli/test_cli_embedded.py"),
}


def portion(nodeid: str) -> str:
    """What a test is handed out together with.

    >>> portion("tests/spark_jobs/test_a.py::test_b[x::y]"), portion("tests/smt/test_a.py::test_b")
    ('spark', 'tests/smt/test_a.py')
    """
    file = nodeid.split("::", 1)[0]
    return next((name for name, files in _PORTIONS.items() if file.startswith(files)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long portions come first: what is handed out last must not be what everybody waits for."""
    names = list(_PORTIONS)
    order = {item: names.index(name) if (name := portion(item.nodeid)) in names else len(names) for item in items}
    items.sort(key=order.__getitem__)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class Portions(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return portion(nodeid)

    config.option.loadscopereorder = False
    return Portions(config, log)
