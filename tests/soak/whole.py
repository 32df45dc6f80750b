"""Seeds of the whole way: random tables, the connector, a killed worker, landing; compared with their source.

    .venv/bin/python -m tests.soak.whole --seeds 1,2 --writes 150

What `tests/spark_jobs/test_landing_end_to_end.py` does with one seed. Ends with 1 if a seed differs, and keeps its
folder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from embedded.kafka import EmbeddedKafka
from spark_jobs.session import start_session
from tests.servers.double import Double
from tests.soak.definitions import session_config
from tests.soak.each_seed import each_seed
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
    spark = start_session(config)
    with EmbeddedKafka() as kafka, Double(ring_delay=0) as scylla:

        def lived(seed: int, kept: str) -> list[str]:
            servers = kafka.bootstrap_servers
            before, after = whole_way(
                scylla, spark, config, servers, lambda name: f"{name}-{seed}", Path(kept), seed, NAMES, given.writes
            )
            # The fewer the writes, the fewer rows there may be before the alterations; dozens of writes follow those.
            assert after, "no row was left to compare"
            return [f"{before} and {after} rows are the same"]

        return each_seed(spark, given.seeds, str(folder), "", lived)


if __name__ == "__main__":
    sys.exit(main())
