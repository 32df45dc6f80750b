"""Lands in a process of its own, for tests that kill it: `python -m tests.spark_jobs.landing_process CONFIG.json`."""

from __future__ import annotations

import sys

from spark_jobs.land import main

if __name__ == "__main__":
    sys.exit(main([sys.argv[1], "--json"]))
