"""A flow without an end: updates of a table's rows as fast as they land, merged and published as `land` does it.

python -m bench landing_flow [--rows N] [--changes N] [--rounds N] [--publish MS] [--json]. Updates are of random rows,
of half of the columns each. A round ends when all of its changes are published. In the first rounds Java's compilers
have much to do. Needs a /proc.
"""

from __future__ import annotations

import argparse
from typing import Any

from bench.landing import Bench, measured
from spark_jobs.config.properties import BY_NAME


def flow(bench: Bench, rounds: int) -> None:
    bench.fill(bench.rows, insert=True)
    settings = {"publish.interval.ms": bench.publish_ms, "merge.every.rows": BY_NAME["merge.every.rows"].default}
    with bench.job(**settings) as (table, until):
        until(lambda: table.rows >= bench.rows and bench.is_published(), 0.5)
        for number in range(1, rounds + 1):
            due = table.rows + bench.count
            bench.fill(bench.count)
            began = bench.now()
            until(lambda due=due: table.rows >= due, 0.2)  # type: ignore[misc]
            landed = bench.now() - began
            until(bench.is_published, 0.5)
            took = bench.now() - began
            bench.figures[f"round {number}, changes per CPU-second"] = round(bench.count / took.cpu)
            bench.figures[f"round {number}, until all had landed, s"] = round(landed.wall, 1)
            bench.figures[f"round {number}, until all was published, s"] = round(took.wall, 1)
        bench.figures["merges"] = table.merges


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m bench landing_flow", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--changes", type=int, default=2_000_000, help="updates of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--publish", type=int, default=60_000, help="publish.interval.ms")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    args = parser.parse_args()
    return measured(args, lambda bench: flow(bench, args.rounds))


if __name__ == "__main__":
    for figure, value in main().items():
        print(f"{figure}: {value}")
