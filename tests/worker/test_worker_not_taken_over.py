"""Of which tables the Java connector's positions in our offsets topic have not been taken over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from connector.delivery import TopicSpec, TransactionalProducer, compact_json, encode_offsets_key, ensure_topics
from connector.errors import ConfigurationError
from connector.table_name import TableName
from connector.topology import Mark, MarkKey, mark_entry
from connector.worker.not_taken_over import MarkedTables
from connector.worker.settings import kafka_clients
from connector.worker.slots import Noted, slots_by_marks, slots_in_force
from embedded.kafka import EmbeddedKafka
from tests.config.files import loaded

ORDERS, ITEMS = TableName("shop", "orders"), TableName("shop", "items")
WINDOW = {"window_start": "5b0c1000-7e2a-11ef-8080-808080808080", "window_end": "5b0c1001-7e2a-11ef-8080-808080808080"}


def java_key(connector: str, table: TableName, vnode: int = 3) -> bytes:
    """In the order of Java's HashMap."""
    where = {
        "table_name": table.name,
        "vnode_id": str(vnode),
        "generation_start": "17",
        "keyspace_name": table.keyspace,
    }
    return compact_json([connector, where])


@pytest.mark.kafka
def test_a_table_without_a_mark_of_ours_is_not_begun_where_java_has_positions_of_it(
    kafka: EmbeddedKafka, unique: Callable[[str], str]
) -> None:
    topic = unique("offsets")
    configuration = loaded(
        {"scylla.table.names": f"{ORDERS},{ITEMS}"},
        {"bootstrap.servers": kafka.bootstrap_servers, "offset.storage.topic": topic},
    )
    clients, name = kafka_clients(configuration), configuration.connector.name
    ensure_topics(clients.admin(), [TopicSpec(topic, 4, 1, compacted=True)])

    def put(*records: tuple[bytes, object]) -> None:
        """Seen by everybody when this returns: the next transaction of the same id begins behind its end."""
        producer = TransactionalProducer(clients, unique("w"), 15_000)
        producer.start(time.monotonic() + 60)
        producer.begin()
        for key, value in records:
            producer.produce_to(topic, 1, key, None if value is None else compact_json(value))
        producer.flush(time.monotonic() + 60)
        producer.commit()
        again = TransactionalProducer(clients, producer.transactional_id, 15_000)
        again.start(time.monotonic() + 60)
        for each in (producer, again):
            each.close()

    def mark(table: TableName, *, gone: bool = False) -> tuple[bytes, object]:
        entry = mark_entry(MarkKey(table, 1, 4), None if gone else Mark(1, 1, 1, "w"))
        return encode_offsets_key(name, entry.key), entry.value

    def looked() -> Noted | None:
        return slots_by_marks(configuration, lambda: False)

    def refused() -> str:
        with pytest.raises(ConfigurationError) as worker:
            slots_in_force(clients, configuration, 4, lambda: False)
        with pytest.raises(ConfigurationError) as caught:
            looked()
        assert str(worker.value) == str(caught.value)
        return str(caught.value)

    put((java_key("another", ORDERS), WINDOW), (java_key(name, TableName("shop", "third")), WINDOW))
    put((java_key(name, ORDERS), None))
    assert looked() is None, "others', another table's, and one that was taken back"

    put((java_key(name, ORDERS), WINDOW), (java_key(name, ITEMS), WINDOW))
    assert f"of the Java connector {name} for shop.items, shop.orders, and none of ours" in refused()
    assert f"scylla-cdc offsets import --from-topic {topic}" in refused()
    put(mark(ORDERS))
    assert f"of the Java connector {name} for shop.items, and none of ours" in refused()
    assert "offsets import --table T --from-topic" in refused() and "offsets reset --table T --to oldest" in refused()
    put(mark(ITEMS))
    noted = looked()
    assert noted is not None and noted.slots == 4
    put(mark(ITEMS, gone=True))
    assert looked() == slots_in_force(clients, configuration, 4, lambda: False), "it was begun anew on purpose"


def test_marks_are_told_by_their_keys_alone() -> None:
    marked = MarkedTables()
    odd = TableName('a","slot":1', "t")
    for table in (ORDERS, odd):
        for slot in range(3):
            marked.note(encode_offsets_key("c", mark_entry(MarkKey(table, slot, 3), None).key))
    for key in ('["c",{"stream_id":"01"}]', '["c",{"x":1,"slot":2}]', '["c",no,"slot":2', '["c",{"slot":1}]'):
        marked.note(key.encode())
    marked.note(java_key("c", ITEMS))
    assert marked.tables == {ORDERS, odd}
    assert json.loads(java_key("c", ITEMS))[1]["vnode_id"] == "3"
