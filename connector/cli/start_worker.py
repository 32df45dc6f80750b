"""How `scylla-cdc run` starts a worker process; not for people.

In, out: as `worker.py` has it.
"""

from __future__ import annotations

from connector.cli.quick_imports import quick_imports


def main() -> None:
    with quick_imports():
        from connector.cli.worker import main as of_worker
    of_worker()


if __name__ == "__main__":
    main()
