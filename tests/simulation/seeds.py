"""The seeds at which worlds miss a rule, written down anew: a search from an old one may take a minute, each time.

``python -m tests.simulation.seeds`` looks at every mutant that a world is to notice, and puts the seed that does so
into the file where the mutant stands. Which one it is changes with the product: run it when these tests are slow.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

from tests.simulation.mutant_worlds import SeedsOf
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutation import Mutant, applied

HERE = Path(__file__).parent


def main() -> int:
    logging.getLogger("connector").setLevel(logging.CRITICAL)
    unnoticed = 0
    for mutant in MUTANTS:
        if not isinstance(mutant.killer, SeedsOf):
            continue
        with applied(mutant):
            found = mutant.killer.fault()
        if found is None:
            unnoticed += 1
        elif found[0] != mutant.killer.first:
            write(mutant, mutant.killer.first, found[0])
        print(f"{mutant.rule}: {mutant.killer.first} -> {found and found[0]}", flush=True)
    return 1 if unnoticed else 0


def write(mutant: Mutant, old: int, new: int) -> None:
    for file in HERE.glob("*mutants.py"):
        text = file.read_text(encoding="utf-8")
        if f'"{mutant.rule}"' in text:
            file.write_text(with_seed(text, mutant.rule, old, new), encoding="utf-8")


def with_seed(text: str, rule: str, old: int, new: int) -> str:
    """``text`` with another seed for the killer of the mutant that breaks the rule."""
    pattern = rf'(Mutant\(\s*"{re.escape(rule)}",(?:(?!Mutant\().)*?world\(\w+, ){old}\)'
    changed, count = re.subn(pattern, rf"\g<1>{new})", text, count=1, flags=re.DOTALL)
    assert count == 1, rule
    return changed


if __name__ == "__main__":
    sys.exit(main())
