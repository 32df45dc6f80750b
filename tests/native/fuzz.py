"""Truncated and mutated pages through the kernel.

In: `python -m tests.native.fuzz PAGES [--seed N]`. Out: what it took. The kernel is built, with `mutants.c` beside it,
so that it ends the process at the first read or write beyond its memory, and at the first operation whose result C does
not define. What it makes of a mutant is not looked at: that may mean anything.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint8, c_uint64, c_void_p
from pathlib import Path
from typing import Final

from connector.formats.encoder import Encoder
from connector.native import Kernel
from connector.native.build import build, compiler
from connector.native.library import Output, places_of
from connector.native.plan import kernel_plan
from connector.native.program import Unsupported
from connector.native.samples import Samples, page_of
from tests.formats.options import output_options
from tests.formats.test_formats_columnwise import Ids
from tests.native.random_options import random_options
from tests.native.variants import ALL

_MARK: Final = "SCYLLA_CDC_SANITIZED"
_MUTANTS: Final = Path(__file__).with_name("mutants.c")
_SANITIZED: Final = ("-g", "-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_BATCHES: Final = 6
_PAGES_OF_A_TABLE: Final = 2000


def run(kernel: Kernel, pages: int, seed: int) -> Counter[str]:
    """Mutants of the pages of as many tables as that takes; how many were taken for pages, and their records."""
    mutants = kernel.function(
        "mutants", None,
        c_void_p, c_char_p, c_int64, c_int32, c_int32, POINTER(c_int32), c_int64, c_uint64, c_void_p, POINTER(c_uint8),
        c_int64, POINTER(c_int32), c_int32, POINTER(c_int64),
    )  # fmt: skip
    counted: Counter[str] = Counter()
    pick, output = random.Random(seed), Output(16 * _BATCHES)
    variants = list(ALL.values())
    while counted["pages"] < pages:
        # Those that are named, and as users combine them, by turns.
        properties = random_options(pick.getrandbits(48))[0] if pick.random() < 0.5 else pick.choice(variants)
        samples = Samples(pick.getrandbits(48), any("Avro" in text for text in properties.values()))
        ids = Ids()
        outline = Encoder(output_options(**properties), ids, ids).outline(samples.layout)
        try:
            plan = None if outline is None else kernel.load(kernel_plan(outline))
        except Unsupported:
            plan = None
        if plan is None:
            continue
        rows, columns = samples.page(_BATCHES), samples.layout.columns
        page, told = page_of(rows), (c_int64 * 3)()
        mutants(
            byref(plan.structure), page, len(page), len(columns), len(rows), places_of(columns), _PAGES_OF_A_TABLE,
            pick.getrandbits(64), plan.scratch, output.bytes, output.size, output.records, output.capacity, told,
        )  # fmt: skip
        counted["pages"] += _PAGES_OF_A_TABLE
        counted += Counter(dict(zip(("no pages", "records", "refused"), told, strict=True)))
    return counted


def sanitized(arguments: list[str]) -> int:
    """The same again in a process that has the sanitizers' library loaded first."""
    command = compiler()
    if command is None:
        sys.exit("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "sanitized.so")
        build(command, library, [*_SANITIZED, str(_MUTANTS)])
        asan = subprocess.run([*command, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        environment = os.environ | {
            "LD_PRELOAD": asan.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",
            # Small objects, too, get memory that is watched.
            "PYTHONMALLOC": "malloc",
            _MARK: str(library),
        }
        return subprocess.run([sys.executable, "-m", "tests.native.fuzz", *arguments], env=environment).returncode


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.native.fuzz", description="mutated pages")
    parser.add_argument("pages", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    path = os.environ.get(_MARK)
    if path is None:
        sys.exit(sanitized(sys.argv[1:]))
    print(dict(run(Kernel(Path(path)), options.pages, options.seed)))


if __name__ == "__main__":
    main()
