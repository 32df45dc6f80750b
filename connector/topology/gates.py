"""Gates: whether a group may pass the changes that it has to wait at.

The rule itself is in `transitions.py` (who waits for whom); here is when waiting ends.
"""

from __future__ import annotations

from collections.abc import Callable

from connector.topology.groups import Gate, GroupState

Reached = Callable[[GroupState, int], bool]


def blocking(state: GroupState, reached: Reached, committed: Reached) -> tuple[Gate, GroupState] | None:
    """The first gate in front of ``state`` that is still shut, with one group that keeps it shut.

    A gate whose groups have all *committed* past it is taken down. One that is open only by what this worker
    has produced stays: an abort takes that back, and with it shuts the gate again.
    """
    shut: tuple[Gate, GroupState] | None = None
    kept: list[Gate] = []
    for gate in state.gates:
        if shut is None:
            witness = next((source for source in gate.before if not reached(source, gate.at)), None)
            if witness is not None:
                shut = (gate, witness)
            elif all(committed(source, gate.at) for source in gate.before):
                continue
        kept.append(gate)
    state.gates = kept
    return shut
