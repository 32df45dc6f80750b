"""`python -m bench [NAME]... [OPTIONS]`: runs the benchmarks of this folder, by default all, and prints their figures.

Options are for the one benchmark that is named. A benchmark is a module here with a `main()` that returns figures by
name, or prints them itself.
"""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import takewhile
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def run(arguments: list[str]) -> None:
    names = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    options = arguments[len(names) :]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options and len(names) != 1:
        sys.exit("options are for one benchmark: name it before them")
    sys.argv[1:] = options
    for name in names or NAMES:
        for figure, value in (import_module(f"bench.{name}").main() or {}).items():
            print(f"{name}: {figure}: {value}", flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
