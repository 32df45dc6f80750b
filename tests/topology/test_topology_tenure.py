"""Two consumer groups never run one connector at a time, in whatever order their processes act, pause and die."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from connector.topology import (
    InTheWay,
    Look,
    Members,
    Tenure,
    Unrecorded,
    Write,
    holder,
    parse_tenure,
    take,
    tenure,
    tenure_entry,
)
from connector.topology.tenure import Steps

RUNS = 1_500
MOVES = 120


@dataclass
class Process:
    """``runs``: it holds slots, because it was told so while it was a member that whole time."""

    group: str
    old: bool = False
    member: bool = False
    runs: bool = False
    steps: Steps | None = None
    step: Any = None
    refused: int = 0
    answer: InTheWay | None = None


@dataclass
class World:
    """A topic, groups, and processes that take their steps one at a time."""

    rng: random.Random
    processes: list[Process]
    log: list[tuple[tuple[str, str, int], Tenure | None]] = field(default_factory=list)
    ids: int = 0

    def visible(self) -> list[Tenure]:
        newest = {key: at for at, (key, _) in enumerate(self.log)}
        return [each for at, (key, each) in enumerate(self.log) if each is not None and newest[key] == at]

    def join(self, process: Process) -> None:
        process.member = True
        if process.old:
            process.runs = True
            return
        self.ids += 1
        process.steps = take(process.group, f"i{self.ids}")
        process.step = next(process.steps)

    def expire(self, process: Process) -> None:
        """Thrown out; it goes on with what it was doing, and does not know it."""
        process.member = process.runs = False

    def kill(self, process: Process) -> None:
        self.expire(process)
        process.steps = process.step = None

    def advance(self, process: Process) -> None:
        assert process.steps is not None
        try:
            process.step = process.steps.send(self.answered(process.step))
        except StopIteration as end:
            process.steps = process.step = None
            process.answer = end.value
            process.refused += end.value is not None
            process.runs = process.member and end.value is None

    def answered(self, step: Any) -> Any:
        if isinstance(step, Look):
            return self.visible()
        if isinstance(step, Write):
            each = step.tenure
            self.log.append(((each.group, each.id, each.term), None if step.withdrawn else each))
            return None
        if isinstance(step, Members):
            return [process.group for process in self.processes if process.member and process.group == step.group]
        assert isinstance(step, Unrecorded)
        asking = next(process.group for process in self.processes if process.step is step)
        old = [each for each in self.processes if each.old and each.member and each.group != asking]
        return InTheWay(old[0].group, ("old",)) if old else None

    def compact(self) -> None:
        newest = {key: at for at, (key, _) in enumerate(self.log)}
        self.log = [record for at, record in enumerate(self.log) if newest[record[0]] == at]

    def move(self) -> None:
        process, chance = self.rng.choice(self.processes), self.rng.random()
        if process.steps is not None and chance < 0.8:
            self.advance(process)
        elif chance < 0.86:
            self.compact()
        elif chance < 0.93 and process.member:
            self.expire(process)
        elif chance < 0.96:
            self.kill(process)
        elif not process.member and process.steps is None and not process.old:
            self.join(process)

    def running(self) -> set[str]:
        return {process.group for process in self.processes if process.runs}


def world(seed: int) -> World:
    rng = random.Random(seed)
    processes = [Process(rng.choice("ab"), old=rng.random() < 0.15) for _ in range(rng.randint(2, 4))]
    # A version that looks for nothing cannot be kept from starting second.
    made = World(rng, processes)
    for process in sorted(processes, key=lambda each: not each.old):
        if process.old and (made.running() - {process.group}):
            process.old = False
        made.join(process)
    return made


def _two_groups_run(runs: int) -> bool:
    for seed in range(runs):
        made = world(seed)
        for _ in range(MOVES):
            made.move()
            if len(made.running()) > 1:
                return True
    return False


def test_two_groups_never_run_at_a_time() -> None:
    assert not _two_groups_run(RUNS)


def test_whatever_has_happened_one_group_runs_once_the_other_gives_up() -> None:
    for seed in range(RUNS // 3):
        made = world(seed)
        for _ in range(MOVES):
            made.move()
        _calm(made)
        assert len(made.running()) == 1, f"seed {seed}"


def _calm(made: World) -> None:
    for process in made.processes:
        if not process.member:
            made.kill(process)
            process.refused = 0
    present = [process for process in made.processes if process.member]
    if not present:
        made.join(made.processes[0])
        if made.processes[0].old:
            return
    for _ in range(200):
        for process in made.processes:
            if process.steps is not None:
                made.advance(process)
            elif process.member and not process.runs:
                if process.refused > made.rng.randint(3, 30):
                    made.kill(process)
                else:
                    made.join(process)


def _without_second_look(group: str, new_id: str) -> Steps:
    held = holder((yield Look()))
    if held is not None and held.group != group:
        members = yield Members(held.group)
        if members:
            return InTheWay(held.group, tuple(members))
    yield Write(Tenure(group, 1 if held is None else held.term + 1, new_id, confirmed=True))
    return None


def _nobody_is_asked_after_writing(mine: Tenure, tenures: Sequence[Tenure]) -> Any:
    held = holder(tenures)
    assert held is not None
    return InTheWay(held.group) if held.group != mine.group else None
    yield


def _the_last_one_holds(tenures: Sequence[Tenure]) -> Tenure | None:
    found: Tenure | None = None
    for each in tenures:
        found = each if found is None or each.term >= found.term else found
    return found


def _unconfirmed_is_enough(tenures: Sequence[Tenure]) -> Tenure | None:
    held = _holder(tenures)
    return None if held is None else Tenure(held.group, held.term, held.id, confirmed=True)


_holder = holder


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("take", _without_second_look),
        ("_in_the_way", _nobody_is_asked_after_writing),
        ("holder", _the_last_one_holds),
        ("holder", _unconfirmed_is_enough),
    ],
    ids=["no second look", "nobody is asked after writing", "the last one holds", "unconfirmed is enough"],
)
def test_every_rule_of_a_tenure_is_needed(
    name: str, replacement: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure, name, replacement)
    if name == "take":
        monkeypatch.setitem(globals(), "take", replacement)
    assert _two_groups_run(RUNS)


def test_a_group_that_was_left_may_be_replaced_and_comes_back_only_when_the_other_is_gone() -> None:
    made = World(random.Random(0), [Process("a"), Process("b")])
    first, second = made.processes

    def through(process: Process) -> InTheWay | None:
        made.join(process)
        while process.steps is not None:
            made.advance(process)
        return process.answer

    assert through(first) is None
    assert through(second) == InTheWay("a", ("a",))
    made.kill(first)
    assert through(second) is None
    assert [(each.group, each.term) for each in made.visible()] == [("b", 2)], "what is over is not kept"
    assert through(first) == InTheWay("b", ("b",))
    made.kill(second)
    assert through(first) is None


def test_a_record_says_what_it_is_and_others_are_none() -> None:
    mine = Tenure("g-c", 3, "ab", confirmed=True)
    entry = tenure_entry(mine, "c-1", 5)
    assert entry.slot == 0
    assert parse_tenure(entry.key, entry.value or {}) == mine
    assert parse_tenure({"keyspace_name": "ks", "table_name": "t", "slot": 0, "slots": 1}, {}) is None
    assert parse_tenure({"group": "g", "term": "1", "id": "x"}, {}) is None
