"""Every rule of sweeps is needed: taken out, a test fails. Those of all else are in `test_topology_mutants.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import connector.topology.commits as commits
import connector.topology.sweeps as sweeps
from connector.topology import Mark, Read, Sweep
from connector.topology.groups import GroupState, Silence
from connector.topology.table_reader import TableReader
from connector.topology.table_state import TableState
from tests.topology import test_topology_sweeps as sweeping

Patch = tuple[Any, str, Any]

_begin, _hear, _finish = sweeps.begin, sweeps._hear, TableReader.finish


def _believes_young_rows(plan: TableState, now: int) -> Sweep | None:
    sweep = _begin(plan, now)
    if sweep is None:
        return None
    plan.sweep = believed = replace(sweep, limit=sweep.upper)
    for slot in sweep.slots:
        for state in plan.awake_in(slot):
            state.swept = believed if state.swept is sweep else None
    return believed


def _hears_only_who_may_be_read(
    plan: TableState, sweep: Sweep, state: GroupState, found: Mapping[bytes, int], narrowest: int
) -> bool:
    return _hear(plan, sweep, state, {stream: at for stream, at in found.items() if at >= sweep.limit}, narrowest)


def _wakes_at_the_limit(
    plan: TableState, sweep: Sweep, state: GroupState, found: Mapping[bytes, int], narrowest: int
) -> bool:
    heard = _hear(plan, sweep, state, found, narrowest)
    if heard and not state.apart:
        state.level = max(state.level, sweep.limit)
    return heard


def _may_rest_but(*rules: str) -> Patch:
    """The rules are names of what a group may not have."""
    may_rest = sweeps.may_rest

    def mutated(plan: TableState, state: GroupState) -> bool:
        had = {rule: getattr(state, rule) for rule in rules}
        for rule in rules:
            setattr(state, rule, type(had[rule])())
        try:
            return may_rest(plan, state)
        finally:
            for rule, value in had.items():
                setattr(state, rule, value)

    return (sweeps, "may_rest", mutated)


def _silence_is_never_taken_back(self: TableReader, read: Read, read_to: int | None = None) -> bool:
    gates, read.state.gates = read.state.gates, []
    try:
        done = _finish(self, read, read_to)
    finally:
        read.state.gates = gates
    return done


_sort_anew = TableReader._sort_anew


def _keeps_its_sweep(self: TableReader) -> None:
    sweep = self.sweep
    _sort_anew(self)
    self.sweep = sweep


def _passes_the_silent(silence: Silence | None, read_to: int, old: Mark) -> int:
    return read_to


MUTANTS: dict[str, tuple[Patch, Callable[[], None]]] = {
    "a sweep is believed about young rows": (
        (sweeps, "begin", _believes_young_rows), sweeping.test_silent_groups_move_on_together_and_are_not_read,
    ),
    "a sweep overlooks rows": (
        (sweeps, "_hear", _hears_only_who_may_be_read), sweeping.test_a_group_with_a_row_is_read_from_where_it_stood,
    ),
    "who is woken goes on at the sweep's limit": (
        (sweeps, "_hear", _wakes_at_the_limit), sweeping.test_a_group_with_a_row_is_read_from_where_it_stood,
    ),
    "who is woken falls silent before it is read": (
        _may_rest_but("news_to"),
        sweeping.test_a_group_is_read_on_until_it_is_beyond_all_that_the_sweep_may_have_passed_over,
    ),
    "who has positions falls silent": (
        _may_rest_but("delivered", "recorded"),
        sweeping.test_who_has_a_position_of_its_own_does_not_fall_silent,
    ),
    "who has to wait falls silent": (
        _may_rest_but("gates"), sweeping.test_who_waits_for_others_does_not_fall_silent,
    ),
    "silence behind gates is not taken back": (
        (TableReader, "finish", _silence_is_never_taken_back),
        sweeping.test_silence_behind_what_is_taken_back_is_taken_back,
    ),
    "the mark passes silent groups": (
        (commits, "_not_past", _passes_the_silent), sweeping.test_the_mark_never_passes_the_silent,
    ),
    "a sweep that was begun for others counts": (
        (TableReader, "_sort_anew", _keeps_its_sweep), sweeping.test_a_sweep_of_other_groups_than_there_are_now_is_void,
    ),
    "a sweep covers a part of its streams": (
        (TableState, "arcs", lambda self: ((0, 1),)),
        sweeping.test_a_sweep_covers_all_streams_of_the_slots_that_are_ours,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_of_sweeps_find_what_the_rule_prevents(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, test = MUTANTS[name]
    test()
    monkeypatch.setattr(*patch)
    with pytest.raises(AssertionError):
        test()
