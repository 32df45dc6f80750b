"""Long runs of the fuzzers: ``python -m tests.fuzz --inputs N --seed N [--only NAME]``.

Out: inputs and foreign exceptions of each; status 1 if there were any.
"""

from __future__ import annotations

import argparse
import logging
import sys

from tests.fuzz.fuzzers import FUZZERS, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=tuple(FUZZERS))
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    failed = False
    for name in (given.only,) if given.only else FUZZERS:
        foreign = fuzz(name, given.inputs, given.seed)
        failed |= bool(foreign)
        print(f"{name}: {given.inputs} inputs, {len(foreign)} foreign exceptions", flush=True)
        for line in foreign[:20]:
            print(f"  {line}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
