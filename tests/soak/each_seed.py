"""Seeds in turn: each in a folder of its own, which is kept where something differs.

In: a session, seeds, a folder, and what is done with one of them. Out: 1 if one differed; what is left is in the
folder. The session ends with them.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession


def each_seed(spark: SparkSession, given: str, folder: str, name: str, lived: Callable[[int, str], list[str]]) -> int:
    """``given``: as `1,2,3`; ``name``: what is told beside a seed. ``lived`` says what happened; any error is one."""
    wrong = 0
    for seed in map(int, given.split(",")):
        began, kept = time.monotonic(), f"{folder}/{seed}"
        Path(kept).mkdir()
        try:
            happened = lived(seed, kept)
        except Exception:
            wrong += 1
            print(f"seed {seed}{name}: kept in {kept}\n{traceback.format_exc()}", flush=True)
        else:
            shutil.rmtree(kept)
            told = [f"{time.monotonic() - began:.0f} s", *happened]
            print(f"seed {seed}{name}: {', '.join(told)}", flush=True)
    spark.stop()
    if not wrong:
        shutil.rmtree(folder)
    return 1 if wrong else 0
