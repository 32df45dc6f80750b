"""What Spark forks its Python workers from, on one machine.

In: Spark, which runs this module in place of PySpark's own. Out: workers of which each task costs what it does. Left to
itself, a worker reads for every task what there is in the archives that Spark puts on its path, of which one is a jar
of ten thousand classes; and each imports what every reading of the source needs. Both take longer than a small table.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

_NEEDED = ("pyarrow", "pyspark.sql.pandas.serializers", "spark_jobs.functions", "spark_jobs.source")


def without_archives() -> None:
    """Takes Spark's own archives off the path, where it is the Spark of the PySpark that is installed."""
    home = os.environ.get("SPARK_HOME")
    if home is None:
        return
    before, folder = list(sys.path), Path(home).resolve()
    archives = {path for path in before if os.path.isfile(path) and Path(path).resolve().is_relative_to(folder)}
    sys.path[:] = [path for path in before if path not in archives]
    installed = find_spec("pyspark")
    places = installed.submodule_search_locations if installed is not None else None
    if find_spec("py4j") is None or folder not in {Path(place).resolve() for place in places or ()}:
        sys.path[:] = before
        return
    for path in archives:
        sys.path_importer_cache.pop(path, None)


def main() -> None:
    without_archives()
    # Elsewhere a process is better not forked once it has loaded libraries with threads.
    for name in _NEEDED if sys.platform == "linux" else ():
        # Whoever needs it says what is wrong with it.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    from pyspark import daemon

    # A worker looks for garbage after each task: not among what was imported.
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
