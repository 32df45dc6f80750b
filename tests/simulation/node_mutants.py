"""Rules of what nodes and brokers do that are not well: who says nothing is asked last, what is gone is told.

In: nothing. Out: `NODES`. As in `mutants.py`, each rule with the change that breaks it, and what notices.
"""

from __future__ import annotations

import pytest

from tests.simulation.mutant_worlds import RANGES_AWAY, world
from tests.simulation.mutation import Mutant, of
from tests.source import test_source_connection as connecting
from tests.source import test_source_routing as routing
from tests.source import test_source_sweeping as sweeping
from tests.source import test_source_tables as tables
from tests.topology import test_topology_arcs as arcs
from tests.worker import test_worker_blocked_readers as blocked
from tests.worker import test_worker_lost_records as lost

CONNECTION = "connector/source/connection.py"
ROUTING = "connector/source/routing.py"
SECOND_ASKING = "connector/source/second_asking.py"
STANDSTILL = "connector/source/standstill.py"
SWEEPING = "connector/source/sweeping.py"
SWEEPS = "connector/topology/sweeps.py"
ARCS = "connector/topology/arcs.py"
WATCH = "connector/source/watch.py"
LOST_RECORDS = "connector/worker/lost_records.py"
TOPIC_LOOKS = "connector/worker/topic_looks.py"


def in_trouble() -> None:
    for trouble in ("silent", "slow"):
        with pytest.MonkeyPatch.context() as patch:
            routing.test_a_node_in_trouble_is_avoided_for_longer_each_time_until_it_answers_in_time_again(
                patch, trouble
            )


def gone() -> None:
    with pytest.MonkeyPatch.context() as patch:
        routing.test_who_is_gone_is_no_measure_for_those_who_have_his_work_as_well(patch)


def two_answers() -> None:
    with pytest.MonkeyPatch.context() as patch:
        connecting.test_of_two_nodes_that_answer_the_page_and_what_follows_it_are_those_of_one(patch)


def stood_still() -> None:
    with pytest.MonkeyPatch.context() as patch:
        connecting.test_what_was_asked_before_we_stood_still_says_nothing_of_nodes(patch)


NODES = [
    Mutant(
        "nothing is read of a table that was created again until it was described",
        WATCH,
        "                self._tables.stop(table)\n",
        "                pass\n",
        of(tables.test_who_lists_the_streams_of_another_log_stops_what_is_read_of_the_table, "another"),
    ),
    Mutant(
        "who is avoided is asked last",
        ROUTING,
        "            plan.sort(key=lambda host: avoided.get(host, now) > now)\n",
        "            pass\n",
        in_trouble,
    ),
    Mutant(
        "who is in trouble again is avoided for longer",
        ROUTING,
        "doubled(AVOIDED_SECONDS, times, LONGEST_SECONDS)",
        "doubled(AVOIDED_SECONDS, 1, LONGEST_SECONDS)",
        in_trouble,
    ),
    Mutant(
        "who answers in time again is in trouble no more",
        ROUTING,
        "        elif answered in self._troubles:\n",
        "        elif answered not in self._troubles:\n",
        in_trouble,
    ),
    Mutant(
        "what comes while a node is avoided does not count",
        ROUTING,
        "if answered is None or seconds is None or self._is_avoided(answered):",
        "if answered is None or seconds is None:",
        in_trouble,
    ),
    Mutant(
        "who is gone is no measure of who is slow",
        ROUTING,
        " and now - at < MEASURE_SECONDS",
        "",
        gone,
    ),
    Mutant(
        "a node is slow by what others take",
        ROUTING,
        " and mean > SLOW_FACTOR * fastest",
        "",
        routing.test_where_all_nodes_are_slow_or_none_is_by_much_none_is_avoided,
    ),
    Mutant(
        "of two nodes that answer the first is heard",
        CONNECTION,
        "                found = first.result()\n",
        "                found = first.result()[0], future._paging_state\n",
        two_answers,
    ),
    Mutant(
        "what was asked before we stood still says nothing of nodes",
        CONNECTION,
        "asked < self._standstill.awake_since()",
        "asked < 0",
        stood_still,
    ),
    Mutant(
        "who stood still knows it before it ticks again",
        STANDSTILL,
        "        if now - self._ticked > TICK_SECONDS + STILL_SECONDS:\n",
        "        if now < self._ticked:\n",
        stood_still,
    ),
    Mutant(
        "silent is only who had the time in which others answer",
        CONNECTION,
        "silent = asked[: min(others, int((seconds + 0.5) // patience))]",
        "silent = asked[:others]",
        of(connecting.test_silent_is_who_had_the_time_in_which_others_answer, True, "ab", None, 10.0, "a"),
    ),
    Mutant(
        "rows of many partitions may take longer than a stream",
        SECOND_ASKING,
        "SILENT_SECONDS_OF_ROWS if takes_time else SILENT_SECONDS",
        "SILENT_SECONDS",
        routing.test_what_is_asked_twice_has_a_bound,
    ),
    Mutant(
        "what is asked twice has a bound",
        SECOND_ASKING,
        "self._left = max(0.0, self._left - 1.0)",
        "self._left = max(1.0, self._left)",
        routing.test_what_is_asked_twice_has_a_bound,
    ),
    Mutant(
        "what began in the seconds before it shows counts among what is asked twice",
        SECOND_ASKING,
        "self._left - self._held >= 1.0",
        "self._left >= 1.0",
        routing.test_a_cluster_whose_answers_are_all_late_is_asked_twice_once_a_second,
    ),
    Mutant(
        "a question that has its answer leaves others the right to be asked twice",
        SECOND_ASKING,
        "                self._owner.give_back(asked=False)\n",
        "                pass\n",
        routing.test_a_cluster_whose_answers_are_all_late_is_asked_twice_once_a_second,
    ),
    Mutant(
        "who is the only one that can be asked uses up no right to ask another one",
        SECOND_ASKING,
        'most = 0 if getattr(statement, "for_one", False) else min(MOST_OTHERS, self._others())',
        "most = MOST_OTHERS",
        of(routing.test_who_is_the_only_one_that_can_be_asked_uses_no_right_to_ask_another, 0, None, 0),
    ),
    Mutant(
        "a sweep that was refused says nothing of what sweeps cost",
        SWEEPING,
        "timed_out = isinstance(error, ReadTimedOut)",
        "timed_out = True",
        sweeping.test_a_sweep_that_is_refused_says_nothing_of_its_price_and_is_soon_tried_again,
    ),
    Mutant(
        "of a sweep that was refused in parts only what got through was swept",
        SWEEPS,
        "    if through is None:\n",
        "    if through is not sweep:\n",
        world(RANGES_AWAY, 1),
    ),
    Mutant(
        "an arc counts when it was read to its end",
        SWEEPING,
        "            active.error = error\n",
        "            active.error = error\n            active.through.append((request.first, request.last))\n",
        world(RANGES_AWAY, 1),
    ),
    Mutant(
        "sweeps go around what was refused",
        SWEEPS,
        "    around = bool(plan.refused)\n",
        "    around = False\n",
        arcs.test_sweeps_go_around_what_is_refused_until_a_read_of_it_was_answered_and_some_time_has_passed,
    ),
    Mutant(
        "who was refused is read by himself before he is swept again",
        SWEEPS,
        "            state.news_to = max(state.news_to, sweep.limit + pause_ms)\n",
        "            pass\n",
        arcs.test_who_was_answered_too_soon_is_not_yet_swept_again,
    ),
    Mutant(
        "a vnode across the ring's end was swept when both of its pieces were",
        ARCS,
        "        if not all(inside(",
        "        if not any(inside(",
        arcs.test_a_vnode_across_the_rings_end_has_two_pieces,
    ),
    Mutant(
        "arcs leave out what other workers have, which may be refused",
        ARCS,
        "state.slot not in slots or ",
        "",
        arcs.test_what_is_refused_of_other_workers_is_not_asked_for,
    ),
    Mutant(
        "nothing is asked for in parts for ever",
        SWEEPING,
        "if soon and active.divided < MOST_DIVIDED:",
        "if soon:",
        sweeping.test_where_much_is_refused_reads_of_single_groups_tell_what,
    ),
    Mutant(
        "arcs around what is refused are queries of the budget",
        SWEEPING,
        "sum(arcs.get(table, 1) for table in tables)",
        "sum(1 for table in tables)",
        of(sweeping.test_arcs_around_what_is_refused_are_not_dear_and_queries_like_others, 40, 3_200),
    ),
    Mutant(
        "each topic is looked at by one worker",
        TOPIC_LOOKS,
        "% self._slots in owned",
        "% self._slots >= 0",
        blocked.test_each_topic_is_looked_at_by_one_worker,
    ),
    Mutant(
        "an end that went back is looked at once more before it is told",
        LOST_RECORDS,
        "                if place not in self._doubted:\n",
        "                self._doubted.setdefault(place, end)\n                if place not in self._doubted:\n",
        lost.test_what_only_seems_to_be_gone_is_not_told,
    ),
    Mutant(
        "a topic of the same name that was created again has lost nothing",
        LOST_RECORDS,
        " and seen.id == topic_id",
        "",
        lost.test_what_only_seems_to_be_gone_is_not_told,
    ),
    Mutant(
        "who has seen how far a topic went looks at it, whoever has its slot",
        LOST_RECORDS,
        "            if topic in known or self._looks",
        "            if self._looks",
        lost.test_who_has_looked_at_a_topic_does_it_at_once_when_brokers_were_away,
    ),
    Mutant(
        "who was without a producer looks at once",
        LOST_RECORDS,
        "        if ready and not self._ready:\n",
        "        if not ready and not self._ready:\n",
        lost.test_who_has_looked_at_a_topic_does_it_at_once_when_brokers_were_away,
    ),
    Mutant(
        "transactions that fail make no doubt certain sooner",
        LOST_RECORDS,
        "max(self._background.monotonic(), self._looks.looked + SURE_SECONDS)",
        "self._background.monotonic()",
        lost.test_transactions_that_fail_meanwhile_make_nothing_certain_sooner,
    ),
    Mutant(
        "of positions that are gone not what is lost is told, but what comes twice",
        LOST_RECORDS,
        "        if topic == self._positions:\n",
        "        if topic != topic:\n",
        lost.test_positions_that_are_gone_are_told_for_what_follows_from_that,
    ),
]
