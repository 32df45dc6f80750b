"""`python -m bench [NAME]...`: runs the benchmarks of this folder, by default all, and prints what they measured.

A benchmark is a module here with a `main()` that returns figures by name, or prints them itself.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def run(names: list[str]) -> None:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    # Benchmarks may have options of their own when run as `python -m bench.NAME`.
    del sys.argv[1:]
    for name in names or NAMES:
        for figure, value in (import_module(f"bench.{name}").main() or {}).items():
            print(f"{name}: {figure}: {value}", flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
