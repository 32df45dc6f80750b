"""Restoring: an offsets topic that compaction has not reached, half of it a neighbour's, read as a worker reads it.

`--records N` of each (2,000,000). Each reading is a process that measures itself: processor time of all threads, and
how much memory it took beyond what it had before. With `group.instance.id` a worker also looks for tables that were
read before, in what was written since its `run` began, or in all of it, where that was not read yet. What owners of
slots have said is looked for where a transaction has no end.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connector.delivery import KafkaClients, encode_offsets_key, named_tables, no_bulk_client, restore
from connector.delivery.committed_words import committed_words
from connector.native import bulk_client
from connector.table_name import TableName
from connector.topology import Mark, MarkKey, mark_entry
from embedded.kafka import EmbeddedKafka

TOPIC = "positions"
SLOTS = 25
TABLES = 50
OWN, NEIGHBOUR = "mine", "neighbour"
#: Nothing is compacted: each key stays there as often as it was written.
UNCOMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(2**30), "min.cleanable.dirty.ratio": "0.99"}


def main() -> dict[str, str]:
    parser = argparse.ArgumentParser(prog="python -m bench offsets", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, metavar="N")
    records: int = parser.parse_args().records
    with EmbeddedKafka() as kafka:
        written = _write(kafka.bootstrap_servers, records)
        found = {
            f"{what}, native={native}": _measured(kafka.bootstrap_servers, what, native)
            for what in READINGS
            for native in ("on", "off")
        }
    return {"stored records, of this connector and of a neighbour": f"{written:,} each"} | {
        what: f"{each['cpu']:.1f} CPU-seconds, {written * 2 / each['cpu'] / 1000:.0f}k records per CPU-second, "
        f"{each['memory']:.0f} MiB beyond the base, found {each['found']:,}"
        for what, each in found.items()
    }


def _measured(bootstrap: str, what: str, native: str) -> dict[str, float]:
    reader = [sys.executable, "-c", "from bench.offsets import measure; measure()", bootstrap, what, native]
    found: dict[str, float] = json.loads(subprocess.run(reader, check=True, stdout=subprocess.PIPE).stdout)
    return found


def _write(bootstrap: str, records: int) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, SLOTS, 1, config=UNCOMPACTED)])[TOPIC].result(timeout=60)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "transactional.id": "bench",
            "linger.ms": 50,
            "queue.buffering.max.messages": 100_000,
        }
    )
    producer.init_transactions(60)
    written = 0
    while written < records:
        read_to = 1_795_000_000_000 + written
        producer.begin_transaction()
        for slot in range(SLOTS):
            for number in range(TABLES):
                for owner in (OWN, NEIGHBOUR):
                    key = MarkKey(TableName("shop", f"orders_{number}"), slot, SLOTS)
                    entry = mark_entry(
                        key, Mark(read_to, 1_790_000_000_000, 1_790_000_000_000, f"{owner}-0123456789ab")
                    )
                    value = json.dumps(entry.value, separators=(",", ":")).encode()
                    producer.produce(TOPIC, value, encode_offsets_key(owner, entry.key), partition=slot)
            producer.poll(0)
        producer.commit_transaction()
        written += SLOTS * TABLES
    return written


def _entries(clients: KafkaClients) -> int:
    slots = restore(clients, connector=OWN, topic=TOPIC, group="bench", slots=range(SLOTS))
    return sum(len(slot.entries) for slot in slots.values())


def _tables(clients: KafkaClients) -> int:
    return len(named_tables(clients, connector=OWN, topic=TOPIC, group="bench", slots=SLOTS, starts={}))


def _owners(clients: KafkaClients) -> int:
    return len(committed_words(clients, OWN, TOPIC, SLOTS, "bench").newest)


READINGS: dict[str, Callable[[KafkaClients], int]] = {
    "entries restored": _entries,
    "tables that it names": _tables,
    "what owners have said": _owners,
}


def measure() -> None:
    """In a process of its own, whose base is what it takes to be about to read."""
    bulk = bulk_client if sys.argv[3] == "on" else no_bulk_client
    clients = KafkaClients({"bootstrap.servers": sys.argv[1]}, bulk=bulk)
    clients.bulk()
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = READINGS[sys.argv[2]](clients)
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "found": found,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "memory": (after.ru_maxrss - before.ru_maxrss) / 1024,
    }
    print(json.dumps(figures))
