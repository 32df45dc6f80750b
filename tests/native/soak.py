"""Both ways on random logs until they agree on so many: `python -m tests.native.soak [RECORDS [SEED]]`, of `make soak`.

In: a number of records, the first seed. Out: what was compared, or the first difference.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import count

from connector.native import Difference, Kernel, NoKernel, compare
from tests.formats.options import output_options
from tests.native.random_options import random_options
from tests.native.variants import ALL


def main(records: int, begin: int = 1_000_000) -> int:
    try:
        kernel = Kernel()
    except NoKernel as why:
        print(f"native path: nothing to compare: {why}")
        return 0
    counted: Counter[str] = Counter()
    options = {name: output_options(**properties) for name, properties in ALL.items()}
    for seed in count(begin):
        drawn, drawn_options = random_options(seed)
        for name, each in (*options.items(), (str(drawn), drawn_options)):
            try:
                counted += compare(kernel, each, [seed])
            except Difference as error:
                print(f"native path: {name}, seed {seed}: {error}")
                return 1
        if counted["records"] >= records:
            break
    print(f"native path: {dict(counted)}: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["1000000"])))
