"""Every rule is needed: taken out of the product's own code, a story or a world fails."""

from __future__ import annotations

import logging

import pytest

from tests.simulation.mutant_worlds import WORLDS
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutation import Mutant, applied


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("connector").setLevel(logging.WARNING)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_rule_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    if mutant.killer.__name__ != WORLDS:  # what passes without a mutant is `test_simulation_worlds.py`
        mutant.killer()
    with applied(mutant):
        try:
            mutant.killer()
        except (Exception, pytest.fail.Exception):
            return
    pytest.fail(f"nobody notices: {mutant.rule}")


def test_the_text_of_each_rule_stands_once_in_its_file() -> None:
    moved = [mutant.rule for mutant in MUTANTS if mutant.source.count(mutant.old) != 1]
    assert not moved


def test_each_rule_stands_once() -> None:
    assert len({mutant.rule for mutant in MUTANTS}) == len(MUTANTS) >= 60
