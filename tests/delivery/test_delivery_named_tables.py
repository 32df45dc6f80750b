"""Tables are told by the keys of a connector's records alone, whatever became of the records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from connector.delivery import KafkaClients, TopicSpec, TransactionalProducer, ensure_topics, named_tables
from connector.delivery.named_tables import NamedTables, _Keys
from connector.delivery.records import encode_offsets_key
from connector.table_name import TableName

ODD = [TableName("ks", 'a"b'), TableName("K s", "ü\\"), TableName('"', "\u2028")]


def key(connector: str, table: TableName, **more: Any) -> bytes:
    return encode_offsets_key(connector, {"keyspace_name": table.keyspace, "table_name": table.name, **more})


def test_every_record_of_ours_names_its_table_and_no_other_does(caplog: pytest.LogCaptureFixture) -> None:
    named = NamedTables()
    keys = _Keys('c"', 7, named)
    gone = TableName("ks", "gone")
    spelled = json.dumps(['c"', {"table_name": "spelled", "keyspace_name": "ks", "slots": 1}]).encode()
    raw = [
        *(key('c"', table, slot=at, slots=9) for at, table in enumerate(ODD)),
        *(key('c"', table, stream_id="00") for table in ODD),
        encode_offsets_key('c"', {"group": "g", "term": 1, "id": "x"}),
        spelled,
        key("c", TableName("ks", "neighbour"), slot=1, slots=9),
        b"foreign",
    ]
    run = [Message(topic="t", partition=0, offset=at, key=each, value=b"{") for at, each in enumerate(raw)]
    run += [Message(topic="t", partition=0, offset=20, key=key('c"', gone, slot=1, slots=9), value=None)]
    end = Message(topic="t", partition=0, offset=22, error=KafkaError(KafkaError._PARTITION_EOF))
    assert list(keys.take([*run, end])) == [end] and keys.end == 21
    assert named.tables == {*ODD, gone, TableName("ks", "spelled")}
    assert caplog.text.count("a foreign record") == 1


@pytest.mark.kafka
def test_what_was_read_before_is_not_read_again(kafka: Any, unique: Callable[[str], str]) -> None:
    clients = KafkaClients({"bootstrap.servers": kafka.bootstrap_servers})
    topic, group = unique("offsets"), unique("g")
    ensure_topics(clients.admin(), [TopicSpec(topic, 3, 1, compacted=True)])
    producer = TransactionalProducer(clients, unique("w"), 15_000)
    producer.start(time.monotonic() + 60)
    producer.begin()
    for slot, name in enumerate(("a", "b", "a")):
        producer.produce_to(topic, slot, key("c", TableName("ks", name), slot=slot, slots=3), b"{}")
    producer.flush(time.monotonic() + 60)
    producer.commit()
    producer.begin()
    producer.produce_to(topic, 0, key("c", TableName("ks", "open"), slot=0, slots=3), b"{}")
    producer.flush(time.monotonic() + 60)

    def found(starts: dict[int, int]) -> set[str]:
        tables = named_tables(clients, connector="c", topic=topic, group=group, slots=3, starts=starts)
        return {table.name for table in tables}

    assert found({}) == {"a", "b"}
    # Markers have offsets as well; a topic that is shorter than what was read is another one.
    assert found({0: 1, 1: 0, 2: 2}) == {"b"} and found({0: 1, 1: 2, 2: 2}) == set()
    assert found({0: 1, 1: 2, 2: 99}) == {"a"}
    producer.abort()
    producer.close()
