"""The product itself in random worlds: every row once, in order, and all well again when nothing goes wrong any more.

A seed that ever failed stands here by itself; ``python -m tests.simulation.simulate FIRST LAST`` looks for more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from connector.source.ahead import ReadAhead, Window
from connector.source.held_chunk import HeldChunk
from connector.source.snapshots import Snapshots
from connector.timeuuid import made_ticks
from connector.topology import Read
from connector.topology.table_reader import TableReader
from tests.simulation.chaos import Roughness
from tests.simulation.mutant_worlds import (
    AGAIN,
    ANEW,
    CLOCKS,
    DEAF,
    DEAF_ANEW,
    DEAF_NODES,
    DOUBT,
    EXPIRES,
    HOT,
    LATE_LEADERS,
    LEADERS,
    NEEDED,
    OFTEN,
    OTHER_KEY,
    OTHER_TABLES,
    PAUSES,
    POSITIONS,
    RANGES_AWAY,
    READS_TIME_OUT,
    REGISTRY,
    RENAMES,
    SIGNALLED,
    SNAPSHOTS,
    SNAPSHOTS_AGAIN,
    SNAPSHOTS_ANEW,
    SNAPSHOTS_OTHER_KEY,
    SNAPSHOTS_RENAMED,
    STAMPED_OFFSETS,
    STAMPS,
    STARTS,
    STRANDED,
    TOPICS,
    TWO_GROUPS,
    UNANSWERED,
)
from tests.simulation.service import Service
from tests.simulation.simulate import Plan, main, simulate
from tests.simulation.source_world import Kind

SEEDS = 14


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_row_once_and_in_order_whatever_happens(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.faults


def test_the_same_seed_is_the_same_run() -> None:
    one, other = simulate(3), simulate(3)
    assert one == other
    assert one.mishaps > 0 and one.commits > 0


@pytest.mark.parametrize("seeds", [("7", "7"), ("7", "6")])
def test_no_seeds_are_no_success(
    seeds: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulate", *seeds])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert f"no seed is from {seeds[0]} up to {seeds[1]}" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [336])
def test_a_worker_that_is_thrown_out_while_it_flushes_commits_nothing(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.faults


@pytest.mark.parametrize("seed", [30164])
def test_a_worker_that_lost_its_slots_forgets_what_it_followed(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.faults


@pytest.mark.parametrize("seed", [0, 5, 19])
def test_values_are_not_lost_by_nodes_that_do_not_hear_of_their_columns(seed: int) -> None:
    assert not simulate(seed, DEAF_NODES).faults


@pytest.mark.parametrize("seed", [11, 41, 138])
def test_no_value_is_lost_or_mistaken_where_a_column_is_dropped_and_comes_back(seed: int) -> None:
    assert not simulate(seed, AGAIN).faults


@pytest.mark.parametrize("seed", [3, 5])
def test_what_is_written_by_the_other_name_of_a_key_column_is_no_dead_letter(seed: int) -> None:
    assert not simulate(seed, RENAMES).faults


@pytest.mark.parametrize("seed", [1, 11])
def test_of_a_table_that_is_created_again_no_row_is_lost_and_none_of_the_old_one_comes_late(seed: int) -> None:
    assert not simulate(seed, ANEW).faults


@pytest.mark.parametrize("seed", [9])
def test_a_last_commit_that_fails_does_not_keep_a_worker_from_ending(seed: int) -> None:
    outcome = simulate(seed, Plan(roughness=Roughness(0.4, only=("orderly stop", "lost answers", "slow markers"))))
    assert not outcome.faults


@pytest.mark.parametrize("seed", [97, 107, 112, 116, 117])
def test_a_broker_that_forgets_how_transactions_ended_loses_nothing(seed: int) -> None:
    outcome = simulate(seed, Plan(roughness=Roughness(1.0, only=("broker crash", "slow markers", "kill", "pause"))))
    assert not outcome.faults


@pytest.mark.parametrize("seed", [159, 1043, 2199, 3235, 510327])
def test_partitions_that_nobody_leads_and_brokers_that_crash_lose_nothing_together(seed: int) -> None:
    outcome = simulate(seed)
    assert not outcome.faults


@pytest.mark.parametrize("seed", [61, 149, 192, 196])
def test_what_somebody_left_where_nobody_could_look_is_known_to_those_who_come_later(seed: int) -> None:
    outcome = simulate(seed, LEADERS)
    assert not outcome.faults


@pytest.mark.parametrize("seed", [1520, 1634, 5264])
def test_what_a_worker_leaves_whose_clock_is_set_back_blocks_nobody(seed: int) -> None:
    outcome = simulate(seed, OFTEN)
    assert not outcome.faults
    assert outcome.kinds["own clock steps"]


@pytest.mark.parametrize("seed", [5167, 6401])
def test_whoever_was_lost_in_his_first_transaction_is_found_by_his_aborted_claim(seed: int) -> None:
    outcome = simulate(seed, OFTEN)
    assert not outcome.faults


def test_a_commit_that_is_made_up_for_brings_nothing_with_it_that_was_aborted() -> None:
    assert not simulate(5462, OFTEN).faults


@pytest.mark.parametrize("seed", [14, 22, 85, 204])
def test_clients_that_lose_their_brokers_for_good_stop_nothing(seed: int) -> None:
    outcome = simulate(seed, STRANDED)
    assert not outcome.faults
    assert outcome.kinds["stranded client"]


@pytest.mark.parametrize("seed", [10, 26])
def test_a_worker_that_does_not_hear_others_any_more_is_replaced(seed: int) -> None:
    assert not simulate(seed, DEAF).faults


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_connector_that_is_paused_and_resumed_goes_on_where_it_stood(seed: int) -> None:
    outcome = simulate(seed, PAUSES)
    assert not outcome.faults
    assert outcome.kinds["connector pauses"]


@pytest.mark.parametrize("seed", [30, 78, 176])
def test_reads_that_time_out_are_all_answered_when_the_servers_are_well_again(seed: int) -> None:
    outcome = simulate(seed, READS_TIME_OUT)
    assert not outcome.faults


@pytest.mark.parametrize("seed", range(3))
def test_who_starts_while_leaders_learn_that_they_are_it_loses_nothing(seed: int) -> None:
    outcome = simulate(seed, LATE_LEADERS)
    assert not outcome.faults
    assert outcome.kinds["leaders learn late"]


@pytest.mark.parametrize("seed", [3, 21])
def test_whoever_tells_the_times_of_records_nothing_is_written_behind_what_may_be_committed(seed: int) -> None:
    outcome = simulate(seed, STAMPS)
    assert not outcome.faults
    assert outcome.kinds["times change"]


def test_nor_is_it_where_brokers_tell_when_positions_were_written() -> None:
    outcome = simulate(0, STAMPED_OFFSETS)
    assert not outcome.faults
    assert outcome.kinds["times of offsets change"]


@pytest.mark.parametrize("seed", [1, 2, 9])
def test_what_nobody_holds_for_a_while_is_not_passed_over(seed: int) -> None:
    outcome = simulate(seed, RANGES_AWAY)
    assert not outcome.faults
    assert outcome.kinds["ranges away"]


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_what_was_written_and_not_answered_takes_no_row_with_it(seed: int) -> None:
    outcome = simulate(seed, UNANSWERED)
    assert not outcome.faults
    assert outcome.kinds["records unanswered"]


@pytest.mark.parametrize("seed", [5, 13, 21])
def test_a_connector_that_is_started_under_another_group_delivers_nothing_twice(seed: int) -> None:
    outcome = simulate(seed, TWO_GROUPS)
    assert not outcome.faults
    assert outcome.kinds["another group"]


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_tables_come_and_go_while_workers_run_and_nothing_of_them_is_lost_or_doubled(seed: int) -> None:
    outcome = simulate(seed, OTHER_TABLES)
    assert not outcome.faults
    assert outcome.kinds["other tables"]


@pytest.mark.parametrize("seed", [*range(6), 2000030])
def test_rows_from_before_the_log_stand_among_their_changes_where_they_are_true(seed: int) -> None:
    outcome = simulate(seed, SNAPSHOTS)
    assert not outcome.faults


def test_a_row_of_a_snapshot_has_what_its_columns_have_where_one_is_dropped_and_comes_back() -> None:
    assert not simulate(25, SNAPSHOTS_AGAIN).faults


@pytest.mark.parametrize("seed", [3, 183])
def test_of_a_table_that_is_created_again_each_record_says_which_of_the_two_it_is_of(seed: int) -> None:
    assert not simulate(seed, SNAPSHOTS_ANEW).faults


def test_a_node_that_has_not_heard_of_a_new_table_does_not_bring_the_former_one_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, identify = [], TableReader.identify

    def noted(reader: TableReader, log: str, listed: Iterable[int]) -> bool:
        was_anew = reader.anew
        is_same = identify(reader, log, listed)
        if reader.anew and not was_anew:
            begun.append((made_ticks(reader.log or "") or 0, made_ticks(log) or 0))
        return is_same

    monkeypatch.setattr(TableReader, "identify", noted)
    assert not simulate(7, DEAF_ANEW).faults
    assert not [each for each in begun if each[0] >= each[1]]


@pytest.mark.parametrize("plan", [OTHER_KEY, SNAPSHOTS_OTHER_KEY], ids=["changes", "snapshot"])
def test_of_a_table_that_is_created_again_with_another_key_no_row_has_the_key_of_the_former_one(plan: Plan) -> None:
    assert not simulate(3, plan).faults


@pytest.mark.parametrize("seed", [3])
def test_a_snapshot_goes_on_where_a_column_of_the_key_gets_another_name(seed: int) -> None:
    assert not simulate(seed, SNAPSHOTS_RENAMED).faults


@pytest.mark.parametrize("seed", [2, 207])
def test_topics_that_are_deleted_and_grow_take_no_row_with_them_that_comes_later(seed: int) -> None:
    outcome = simulate(seed, TOPICS)
    assert not outcome.faults
    assert outcome.kinds["topic deleted"]


@pytest.mark.parametrize("seed", [4, 10])
def test_positions_that_are_deleted_take_no_row_with_them(seed: int) -> None:
    outcome = simulate(seed, POSITIONS)
    assert not outcome.faults
    assert outcome.kinds["positions deleted"]


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_snapshots_that_are_asked_for_and_pause_show_each_row_once(seed: int) -> None:
    outcome = simulate(seed, SIGNALLED)
    assert not outcome.faults
    assert outcome.kinds["snapshot asked"] + outcome.kinds["snapshot pauses"]


@pytest.mark.parametrize("seed", [0, 2, 10])
def test_rows_that_no_select_tells_wait_and_no_other_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    aside, leave = [], Snapshots._is_left_aside

    def noted(snapshots: Snapshots, held: HeldChunk) -> bool:
        aside.append(held)
        return leave(snapshots, held)

    monkeypatch.setattr(Snapshots, "_is_left_aside", noted)
    outcome = simulate(seed, DOUBT)
    assert not outcome.faults
    assert aside


@pytest.mark.parametrize("seed", range(3))
def test_schemas_that_are_refused_for_a_while_lose_nothing(seed: int) -> None:
    outcome = simulate(seed, REGISTRY)
    assert not outcome.faults
    assert outcome.kinds["registry refuses"] + outcome.kinds["registry away"]


@pytest.mark.parametrize("seed", range(3))
def test_what_expired_while_nobody_read_is_said_and_all_else_is_delivered(seed: int) -> None:
    outcome = simulate(seed, EXPIRES)
    assert not outcome.faults
    assert outcome.kinds["long stop"] and outcome.expired


@pytest.mark.parametrize("seed", [3, 18, 20])
def test_a_snapshot_makes_up_for_what_expired_however_the_first_commits_behind_it_end(seed: int) -> None:
    outcome = simulate(seed, NEEDED)
    assert not outcome.faults
    assert outcome.kinds["long stop"] and outcome.expired


def test_what_expired_before_its_table_was_begun_is_nobodys_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers are away until all that was written is older than the log keeps it."""
    start = Service.start

    def started(service: Service) -> None:
        service.broker.stop(45.0)
        start(service)

    monkeypatch.setattr(Service, "start", started)
    outcome = simulate(0, replace(NEEDED, roughness=Roughness(0, 0, until=50.0)))
    assert not outcome.faults and not outcome.expired


@pytest.mark.parametrize("seed", [12])
def test_who_starts_beside_a_node_whose_clock_is_ahead_passes_over_nothing(seed: int) -> None:
    outcome = simulate(seed, CLOCKS)
    assert not outcome.faults
    assert outcome.kinds["clock ahead"]


@pytest.mark.parametrize("seed", range(3))
def test_nobody_says_that_rows_expired_while_tables_are_being_started(seed: int) -> None:
    outcome = simulate(seed, STARTS)
    assert not outcome.faults and not outcome.expired


@pytest.mark.parametrize("seed", range(3))
def test_nobody_can_tell_that_windows_are_read_before_their_turn(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, take = [], ReadAhead.take

    def noted(ahead: ReadAhead, read: Read) -> Window | None:
        window = take(ahead, read)
        taken.append(window is not None)
        return window

    monkeypatch.setattr(ReadAhead, "take", noted)
    assert not simulate(seed, HOT).faults
    assert any(taken)


@pytest.mark.parametrize("shards", [64, 130])
def test_groups_of_many_streams_are_read_in_several_queries(shards: int) -> None:
    plan = Plan(
        Kind(tablets=False, tables=1, shards=shards, rows=60, seconds=6.0),
        Roughness(until=8.0),
        connector={"scylla.query.mode": "group"},
    )
    outcome = simulate(shards, plan)
    assert not outcome.faults
