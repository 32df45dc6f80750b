"""Seeds of the whole way: random tables, the connector, a killed worker, landing; compared with their source.

    .venv/bin/python -m tests.soak.whole --seeds 1,2 --writes 150

What `tests/spark_jobs/test_landing_end_to_end.py` does with one seed. Ends with 1 if a seed differs, and keeps its
folder.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from embedded.kafka import EmbeddedKafka
from spark_jobs.session import start_session
from tests.servers.double import Double
from tests.soak.definitions import session_config
from tests.spark_jobs.whole_way import whole_way

NAMES = ("t0", "T1", "t2")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.whole", description=__doc__)
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument(
        "--writes", type=int, default=150, help="to each of three tables, before they are altered (150)"
    )
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="scylla-cdc-whole-soak-"))
    config = session_config(str(folder / "session"))
    spark, wrong = start_session(config), 0
    with EmbeddedKafka() as kafka, Double(ring_delay=0) as scylla:
        for seed in map(int, given.seeds.split(",")):
            began, kept = time.monotonic(), folder / str(seed)
            kept.mkdir()
            try:
                whole_way(
                    scylla,
                    spark,
                    config,
                    kafka.bootstrap_servers,
                    lambda name, seed=seed: f"{name}-{seed}",  # type: ignore[misc]
                    kept,
                    seed,
                    NAMES,
                    given.writes,
                )
            except Exception:
                wrong += 1
                print(f"seed {seed}: kept in {kept}\n{traceback.format_exc()}", flush=True)
            else:
                shutil.rmtree(kept)
                print(f"seed {seed}: {time.monotonic() - began:.0f} s", flush=True)
    spark.stop()
    if not wrong:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
