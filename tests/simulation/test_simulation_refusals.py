"""A topic that refuses or does not answer stops its own table only: the product on simulated servers.

Each case does something to one table's topic (or to one that all share) while two tables are delivered. The other
table must be delivered to its end, with few transactions taken back; what is said of the one names topic and cause.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError

from connector.delivery.standing import Standing
from connector.delivery.topics import END_BYTES
from connector.worker.state import State
from connector.worker.status_document import TableStatus
from tests.simulation import invariants
from tests.simulation.kafka_log import Stored, Topic
from tests.simulation.scenarios import stage
from tests.simulation.service import DEAD_LETTERS, NAME, OFFSETS, SCHEMAS, Service, Worker, service
from tests.simulation.source_world import Kind, Table, make_world

FAR = 1e9
LONG = 400.0


@contextmanager
def running(
    tables: int = 2, rows: int = 30, worker: dict[str, str] | None = None, workers: int = 1, **connector: str
) -> Iterator[Service]:
    world = make_world(5, Kind(tablets=True, tables=tables, changes=0, late=False, rows=rows, seconds=8.0))
    settings = {"errors.tolerance": "none", **connector}
    files = {"transaction.timeout.ms": "4000", **(worker or {})}
    with service(world, 5, workers=workers, slots=3, connector=settings, worker=files) as made:
        made.start()
        made.scheduler.run(3.0)
        yield made


def topic_of(on: Service, table: Table) -> Topic:
    return on.broker.topics[f"{NAME}.{table.name}"]


def until(on: Service, condition: Callable[[], object], seconds: float = LONG, step: float = 0.5) -> None:
    deadline = on.scheduler.now + seconds
    while not condition():
        assert on.scheduler.now < deadline, on.troubles()
        on.scheduler.run(on.scheduler.now + step)


def missing(on: Service, table: Table) -> list[str]:
    return [line for line in invariants.missing(on) if line.startswith(f"{table.name}: ")]


def said(on: Service, table: Table) -> TableStatus:
    status = on.workers[0].status
    assert status is not None
    return status.tables[str(table.name)]


def state(on: Service, table: Table) -> str:
    return said(on, table).state.value


def turns(on: Service, table: Table) -> list[State]:
    return [*on.workers[0].turns[str(table.name)]]


def words(on: Service, table: Table) -> str:
    document = said(on, table)
    return "; ".join([str(document.error), *document.failing])


def leaderless(topic: Topic) -> None:
    for partition in topic.partitions:
        partition.available_at = FAR


def led_again(topic: Topic) -> None:
    for partition in topic.partitions:
        partition.available_at = 0.0


def test_a_topic_that_takes_nothing_for_a_while_holds_up_its_own_table_only() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        aborts = said_aborts(on)
        topic_of(on, bad).refuses = KafkaError.UNKNOWN
        until(on, lambda: not missing(on, good))
        on.scheduler.run(on.scheduler.now + 25)
        assert missing(on, bad)
        assert (state(on, bad), state(on, good)) == ("WAITING", "RUNNING")
        assert "UNKNOWN" in words(on, bad) and f"{NAME}.{bad.name}" in words(on, bad)
        assert said_aborts(on) - aborts <= 8, "tried again with growing pauses"
        topic_of(on, bad).refuses = None
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_a_worker_that_lost_its_slots_does_not_say_that_their_changes_wait() -> None:
    # As many others as there are slots: whoever comes back gets none, and nothing becomes a record there any more.
    with running(workers=4) as on:
        bad = on.cluster.world.tables[0]
        topic_of(on, bad).refuses = KafkaError.UNKNOWN
        until(on, lambda: _waiting(on))
        lost = _waiting(on)[0]
        on.scheduler.pause(lost.process, 20.0)
        on.scheduler.run(on.scheduler.now + 30.0)
        assert lost.status is not None and not lost.status.slots
        topic_of(on, bad).refuses = None
        until(on, lambda: not invariants.missing(on) and not on.troubles(), 120.0)


def test_whoever_takes_slots_over_writes_a_topic_of_schemas_that_somebody_has_deleted_anew() -> None:
    with running(workers=2) as on:
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        on.broker.delete(SCHEMAS)
        on.scheduler.pause(on.workers[1].process, 40.0)
        until(on, lambda: SCHEMAS in on.broker.topics, 30.0)
        until(on, lambda: not on.troubles(), 60.0)
        assert not on.ends, "nobody was started again for it"
        told = {json.loads(record.key or b"")["table_name"] for record in committed(on.broker.topics[SCHEMAS])}
        assert told == {table.name.name for table in on.cluster.world.tables}
        assert not invariants.breaches(on)


def test_what_stood_in_a_partition_that_is_no_more_keeps_nothing_from_its_topic() -> None:
    """Whoever deletes the topic to be rid of it may make it anew with fewer partitions."""
    with stage() as on:
        stood = Standing(60.0)
        for number in (0, 5):
            stood.suspect((on.world.data, number), 0)
        assert stood.look(on.world.clients, on.world.data) is None


def committed(topic: Topic) -> list[Stored]:
    return [record for partition in topic.partitions for record in partition.committed()]


def _waiting(on: Service) -> list[Worker]:
    """Workers whose changes do not become records."""
    said = [(each, each.status) for each in on.living]
    return [each for each, status in said if status and any("do not become" in one.text for one in status.background)]


def test_a_topic_without_a_leader_keeps_no_worker_from_starting() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        until(on, lambda: not invariants.missing(on))
        leaderless(topic_of(on, bad))
        on.kill(on.workers[0])
        until(on, lambda: on.workers[0].status is not None and state(on, good) == "RUNNING")
        led_again(topic_of(on, bad))
        until(on, lambda: not on.troubles())
        assert not invariants.breaches(on)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "grant DESCRIBE and WRITE"),
        (KafkaError.POLICY_VIOLATION, "settings"),
        (KafkaError.INVALID_RECORD, "compacted"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "raise its max.message.bytes"),
    ],
)
def test_a_topic_that_refuses_until_it_is_mended_holds_up_its_own_table_only(code: int, advice: str) -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        aborts = said_aborts(on)
        topic_of(on, bad).refuses = code
        until(on, lambda: not missing(on, good) and advice in words(on, bad) and state(on, bad) == "WAITING")
        on.scheduler.run(on.scheduler.now + 120)
        assert state(on, good) == "RUNNING" and missing(on, bad)
        assert words(on, bad).count(f"topic {NAME}.{bad.name}:") == 1
        seen = code == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert said_aborts(on) - aborts <= (len(on.living) if seen else 12), "tried again with growing pauses, or not"
        topic_of(on, bad).refuses = None
        topic_of(on, bad).config["max.message.bytes"] = "2000000"
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_a_table_waits_without_a_break_until_its_topic_is_mended() -> None:
    with running() as on:
        bad, _ = on.cluster.world.tables
        until(on, lambda: state(on, bad) == "RUNNING")
        before = turns(on, bad)
        topic_of(on, bad).refuses = KafkaError.UNKNOWN
        on.scheduler.run(on.scheduler.now + 60.0)
        assert turns(on, bad) == [*before, State.WAITING], "whoever looks while it is tried again sees no trouble"
        assert "do not become records" in str(on.workers[0].status), "while it is tried again"
        topic_of(on, bad).refuses = None
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert turns(on, bad) == [*before, State.WAITING, State.RUNNING]


def test_topics_that_are_not_there_are_waited_for_at_the_start_and_later() -> None:
    with running(worker={"topic.creation.enable": "false"}) as on:
        bad, good = on.cluster.world.tables
        on.broker.create(DEAD_LETTERS)
        until(on, lambda: {state(on, bad), state(on, good)} == {"WAITING"})
        on.broker.create(f"{NAME}.{good.name}", 2)
        until(on, lambda: not missing(on, good) and state(on, good) == "RUNNING")
        on.kill(on.workers[0])
        until(on, lambda: on.workers[0].status is not None and state(on, good) == "RUNNING")
        until(on, lambda: state(on, bad) == "WAITING")
        assert "the topic does not exist, and topic.creation.enable is false" in words(on, bad)
        on.broker.create(f"{NAME}.{bad.name}", 2)
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_a_topic_whose_limit_is_lowered_refuses_large_records_only() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        topic_of(on, bad).config["max.message.bytes"] = "100"
        until(on, lambda: not missing(on, good) and state(on, bad) == "FAILED")
        assert "max.message.bytes is 100" in words(on, bad)
        assert not invariants.breaches(on) and not on.ends
        aborts = said_aborts(on)
        on.scheduler.run(on.scheduler.now + 700)
        assert state(on, bad) == "FAILED", "while it is tried again, too"
        assert said_aborts(on) - aborts <= 4, "tried again rarely, all groups together"
        topic_of(on, bad).config["max.message.bytes"] = "2000000"
        until(on, lambda: not invariants.missing(on) and not on.troubles(), 1000)
        assert not invariants.breaches(on) and not on.ends


@pytest.mark.parametrize("positions", [True, False])
def test_ends_that_do_not_fit_are_written_when_another_broker_coordinates(positions: bool) -> None:
    """Kafka's coordinator gives them up, also when the limit is raised: nobody goes on before, and nothing is lost."""
    with running(workers=2) as on:
        topic = on.broker.topics[OFFSETS] if positions else topic_of(on, on.cluster.world.tables[0])
        until(on, lambda: any(each.open for each in topic.partitions), step=0.003)
        topic.config["max.message.bytes"] = str(END_BYTES - 1)
        until(on, lambda: on.broker.transactions.given_up)
        on.scheduler.run(on.scheduler.now + 10)
        topic.config["max.message.bytes"] = "1000000"
        until(
            on, lambda: "CONCURRENT_TRANSACTIONS" in str(on.troubles()) and "restart the broker" in str(on.troubles())
        )
        on.scheduler.run(on.scheduler.now + 20)
        assert on.broker.transactions.given_up and invariants.missing(on)
        on.broker.move_coordinator(1.0)
        until(on, lambda: not invariants.missing(on) and not on.troubles() and not invariants.blocked(on))
        assert not invariants.breaches(on) and not on.ends


def test_a_table_that_is_gone_is_read_again_when_it_is_there() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        bad.gone = (on.cluster.now_ms, on.cluster.now_ms + 120_000)
        until(on, lambda: not missing(on, good) and state(on, bad) == "FAILED")
        assert "does not exist" in words(on, bad) and state(on, good) == "RUNNING"
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_the_only_table_is_waited_for_when_it_is_gone() -> None:
    """As one beside others: `run` does not end for it."""
    with running() as on:
        only, _ = on.cluster.world.tables
        on.read_tables([only.name])
        until(on, lambda: state(on, only) == "RUNNING" and not missing(on, only))
        only.gone = (on.cluster.now_ms, on.cluster.now_ms + 120_000)
        until(on, lambda: state(on, only) == "FAILED")
        statuses = [worker.status for worker in on.workers.values() if worker.status is not None]
        assert statuses and not any(status.nothing_left for status in statuses)
        until(on, lambda: state(on, only) == "RUNNING")
        assert not missing(on, only) and not on.ends


def test_a_table_that_was_not_there_at_the_start_of_a_worker_is_read_when_it_is() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        bad.gone = (on.cluster.now_ms, on.cluster.now_ms + 100_000)
        on.kill(on.workers[0])
        until(on, lambda: not missing(on, good) and state(on, bad) == "FAILED")
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_a_table_that_is_wanted_no_more_is_waited_for_no_more() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        topic_of(on, bad).refuses = KafkaError.TOPIC_AUTHORIZATION_FAILED
        until(on, lambda: state(on, bad) == "WAITING")
        on.read_tables([good.name])
        until(on, lambda: not on.troubles() and str(bad.name) not in _tables(on), 30.0)


def test_a_table_that_is_missing_and_wanted_no_more_is_no_failure() -> None:
    with running() as on:
        bad, good = on.cluster.world.tables
        bad.gone = (on.cluster.now_ms, on.cluster.now_ms + 1_000_000)
        on.kill(on.workers[0])
        until(on, lambda: on.workers[0].status is not None and state(on, bad) == "FAILED")
        on.read_tables([good.name])
        until(on, lambda: not on.troubles() and str(bad.name) not in _tables(on), 30.0)


@pytest.mark.parametrize("ids", [{}, {"group.instance.id": "kept"}], ids=["new at each start", "kept"])
def test_what_was_left_open_is_ended_before_its_table_is_read_again(ids: dict[str, str]) -> None:
    """A broker forgot how it ended, while nobody read the table."""
    with running(rows=80, worker=ids) as on:
        back, stays = on.cluster.world.tables
        partitions = topic_of(on, back).partitions
        until(on, lambda: any(each.open for each in partitions), step=0.003)
        left = [each for each in partitions if each.open]
        on.read_tables([stays.name])
        on.close(20.0)
        until(on, lambda: not any(each.open for each in partitions), 15.0)
        for each in left:
            each.forget_the_last_marker()
        until(on, lambda: on.living and not missing(on, stays) and not on.troubles())
        on.read_tables([back.name, stays.name])
        until(on, lambda: not invariants.missing(on) and not on.troubles(), 60.0)
        assert not invariants.breaches(on) and not invariants.blocked(on)


@pytest.mark.parametrize("heirs", [1, 2])
def test_what_was_left_open_in_a_topic_that_heirs_may_not_see_is_ended_before_it_is_written(heirs: int) -> None:
    """It was no topic of theirs: what a crashed worker had left there was forgotten with their first claims, and
    readers stood in front of it for ever."""
    with running(rows=80) as on:
        bad, good = on.cluster.world.tables
        partitions = topic_of(on, bad).partitions
        until(on, lambda: any(each.open for each in partitions), step=0.003)
        left = [each for each in partitions if each.open]
        on.close(20.0)
        until(on, lambda: not any(each.open for each in partitions), 15.0)
        for each in left:
            each.forget_the_last_marker()
        topic_of(on, bad).hidden = True
        for heir in range(heirs):
            if heir:
                on.kill(on.workers[0])
                until(on, lambda: not on.living)
            until(on, lambda: on.living and on.workers[0].status is not None and state(on, good) == "RUNNING")
            until(on, lambda: state(on, bad) == "WAITING", 60.0)
            assert "TOPIC_AUTHORIZATION_FAILED" in words(on, bad) and invariants.blocked(on), words(on, bad)
        topic_of(on, bad).hidden = False
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not invariants.blocked(on)


def _tables(on: Service) -> list[str]:
    status = on.workers[0].status
    return [] if status is None else [*status.tables]


def test_a_dead_letter_fits_its_topic() -> None:
    with running(**{"errors.tolerance": "all"}) as on:
        bad, _ = on.cluster.world.tables
        on.broker.topics[DEAD_LETTERS].config["max.message.bytes"] = "2000"
        topic_of(on, bad).config["max.message.bytes"] = "100"
        until(on, lambda: not invariants.missing(on))
        assert on.records(DEAD_LETTERS) and not on.ends


def test_dead_letters_that_find_no_topic_wait_for_it_and_nobody_else_does() -> None:
    with running(**{"errors.tolerance": "all"}) as on:
        bad, good = on.cluster.world.tables
        leaderless(on.broker.topics[DEAD_LETTERS])
        topic_of(on, bad).config["max.message.bytes"] = "100"
        until(on, lambda: not missing(on, good))
        on.scheduler.run(on.scheduler.now + 30)
        assert state(on, good) == "RUNNING" and state(on, bad) == "WAITING"
        assert f"topic {DEAD_LETTERS}" in words(on, bad)
        led_again(on.broker.topics[DEAD_LETTERS])
        until(on, lambda: not invariants.missing(on))


AVRO = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://registry:8081",
}


@pytest.mark.parametrize(
    ("status", "advice", "tolerance"),
    [(409, "incompatible", "none"), (403, "grant read and write", "all"), (503, "503", "all")],
)
def test_schemas_that_a_registry_refuses_hold_up_their_own_table_only(status: int, advice: str, tolerance: str) -> None:
    with running(worker=AVRO, **{"errors.tolerance": tolerance}) as on:
        bad, good = on.cluster.world.tables
        assert len(on.registry.subjects) == 2
        # The new column is a new schema.
        bad.columns["x"] = on.cluster.now_ms
        on.registry.refused[bad.name.name] = status, {"error_code": status, "message": f"{status}"}
        until(on, lambda: not missing(on, good) and advice in words(on, bad))
        on.scheduler.run(on.scheduler.now + 60)
        assert missing(on, bad) and not on.records(DEAD_LETTERS)
        assert state(on, bad) in ("WAITING", "FAILED") and state(on, good) == "RUNNING"
        assert "http://registry:8081" in words(on, bad)
        on.registry.mend()
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_a_registry_that_takes_its_time_for_one_table_delays_no_other() -> None:
    with running(worker=AVRO) as on:
        bad, good = on.cluster.world.tables
        on.registry.slow[bad.name.name] = 45.0
        bad.columns["x"] = good.columns["x"] = on.cluster.now_ms
        until(on, lambda: not missing(on, good), 30.0)
        assert missing(on, bad) and state(on, good) == "RUNNING"
        assert "has not answered" in words(on, bad)
        on.registry.mend()
        until(on, lambda: not invariants.missing(on) and not on.troubles())
        assert not invariants.breaches(on) and not on.ends


def test_heartbeats_that_find_no_topic_hold_nobody_up() -> None:
    with running(**{"heartbeat.interval.ms": "1000"}) as on:
        on.broker.topics[f"__debezium-heartbeat.{NAME}"].refuses = KafkaError.TOPIC_AUTHORIZATION_FAILED
        aborts = said_aborts(on)
        until(on, lambda: not invariants.missing(on))
        on.scheduler.run(on.scheduler.now + 30)
        assert said_aborts(on) - aborts <= 4, "tried again with growing pauses"


def test_heartbeats_that_no_transform_makes_records_of_hold_nobody_up() -> None:
    """A step with a predicate that meets all records of changes, and finds nothing in those of heartbeats."""
    step = {"type": "HeaderFrom$Value", "fields": "op", "headers": "op", "operation": "copy"}
    step |= {"predicate": "deleted", "negate": "true"}
    chain = {"transforms": "op", "predicates": "deleted", "predicates.deleted.type": "RecordIsTombstone"}
    chain |= {f"transforms.op.{name}": text for name, text in step.items()}
    with running(**chain, **{"heartbeat.interval.ms": "1000"}) as on:
        until(on, lambda: not invariants.missing(on))
        assert not invariants.breaches(on) and not on.ends
        status = on.workers[0].status
        assert status is not None and status.state == State.RUNNING
        (failing,) = (it for it in status.background if it.task == "heartbeats")
        assert "there is no field 'op'" in failing.error and "TopicNameMatches" in failing.error


def said_aborts(on: Service) -> int:
    status = on.workers[0].status
    return 0 if status is None else status.delivery.aborts
