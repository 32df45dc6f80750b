"""Every rule is needed: taken out of the product's own code, a story or a world fails."""

from __future__ import annotations

import logging

import pytest

from tests.simulation.mutant_worlds import SeedsOf
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutation import Mutant, applied
from tests.simulation.seeds import with_seed


@pytest.fixture(autouse=True)
def quiet() -> None:
    logging.getLogger("connector").setLevel(logging.WARNING)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_rule_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    if not isinstance(mutant.killer, SeedsOf):  # what passes without a mutant is `test_simulation_worlds.py`
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


def test_a_seed_is_written_down_where_its_mutant_stands() -> None:
    one = 'Mutant("one", F, "a", "b", world(ROUGH, 7))'
    text = f'A = [{one}, Mutant(\n"two", F, "c", "d", world(ROUGH, 7))]\n'
    changed = with_seed(text, "two", 7, 12)
    assert one in changed and changed.count("world(ROUGH, 12)") == 1
    assert with_seed(text, "one", 7, 12) == text.replace("7", "12", 1)
    with pytest.raises(AssertionError):
        with_seed(text.replace(one, 'Mutant("one", F, "a", "b", story)'), "one", 7, 12)
