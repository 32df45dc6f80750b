"""Truncated and mutated pages through the kernel.

In: `python -m tests.native.fuzz PAGES [--sanitized] [--seed N]`. Out: what it took. With `--sanitized` the kernel is
built so that it ends the process at the first read or write beyond its memory, and at the first operation whose result
C does not define. What it makes of a mutant is not looked at: that may mean anything.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from connector.changes import UncutBatches
from connector.formats.encoder import Encoder
from connector.native import BlockEncoder, Kernel
from connector.native.build import build, compiler
from connector.native.samples import Samples, page_of
from tests.formats.options import output_options
from tests.formats.test_formats_columnwise import Ids
from tests.native.variants import ALL

_MARK = "SCYLLA_CDC_SANITIZED"
_PLENTY = 1 << 30
_BATCHES = 6
_PAGES_OF_A_TABLE = 200


def run(kernel: Kernel, pages: int, seed: int) -> Counter[str]:
    """Mutants of the pages of as many tables as that takes; how many were taken for pages, and their records."""
    counted: Counter[str] = Counter()
    pick = random.Random(seed)
    variants = list(ALL.values())
    while counted["pages"] < pages:
        properties = pick.choice(variants)
        samples = Samples(pick.getrandbits(48), any("Avro" in text for text in properties.values()))
        ids = Ids()
        encoder = BlockEncoder(kernel, Encoder(output_options(**properties), ids, ids))
        rows = samples.page(_BATCHES)
        whole = page_of(rows)
        for _ in range(_PAGES_OF_A_TABLE):
            counted["pages"] += 1
            body = mutated(whole, pick)
            uncut = kernel.scan(body, 0, samples.layout.columns, len(rows), list)
            if uncut is None:
                counted["no pages"] += 1
                continue
            batches = UncutBatches(samples.layout, uncut)
            while batches:
                block = encoder.encode(batches, _PLENTY, _PLENTY)
                made = 0 if block is None else len(block.ends)
                counted["records"] += 0 if block is None else len(block)
                counted["refused"] += block is None
                batches = batches[max(1, made) :]
    return counted


def mutated(page: bytes, pick: random.Random) -> bytes:
    """A few bytes changed, most of them where lengths stand; sometimes cut off."""
    wrong = bytearray(page)
    for _ in range(pick.choice((1, 1, 2, 3, 8))):
        at = pick.randrange(len(wrong))
        kind = pick.randrange(4)
        if kind == 0:
            wrong[at] = pick.randrange(256)
        elif kind == 1:
            wrong[at] ^= 1 << pick.randrange(8)
        elif kind == 2:
            found = wrong.find(b"\0\0\0", at)
            if 0 <= found < len(wrong) - 3:
                wrong[found + 3] = pick.choice((0, 1, 2, 3, 5, 7, 9, 15, 17, 255))
        else:
            wrong[at : at + 4] = pick.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0"))
    return bytes(wrong[: pick.randrange(len(wrong))]) if pick.random() < 0.05 else bytes(wrong)


def sanitized(arguments: list[str]) -> int:
    """The same again in a process that has the sanitizers' library loaded first."""
    command = compiler()
    if command is None:
        sys.exit("there is no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "sanitized.so")
        build(command, library, ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
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
    parser.add_argument("--sanitized", action="store_true")
    options = parser.parse_args()
    if options.sanitized and _MARK not in os.environ:
        sys.exit(sanitized(sys.argv[1:]))
    path = os.environ.get(_MARK)
    kernel = Kernel() if path is None else Kernel(Path(path))
    print(dict(run(kernel, options.pages, options.seed)))


if __name__ == "__main__":
    main()
