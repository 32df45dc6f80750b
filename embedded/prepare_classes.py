"""`python -m embedded.prepare_classes`, once during set-up: writes the archive that `embedded.class_archive` finds.

A broker is started and used for a moment, and the classes that it loaded are archived.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connector.errors import CdcError, EmbeddedError
from embedded import kafka
from embedded.class_archive import QUIET, archive_path
from spark_jobs.jvm import ENVIRONMENT, Java, find_java


def write_archive(java: Java, classpath: str, jvm_options: Sequence[str]) -> Path:
    """Starts and uses a broker to see what it loads, and archives that."""
    path = archive_path(java, classpath)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="classes-", dir=path.parent) as folder:
        loaded, fresh = Path(folder) / "loaded", Path(folder) / "fresh.jsa"
        with kafka.EmbeddedKafka(jvm_options=[f"-XX:DumpLoadedClassList={loaded}"]) as broker:
            _use(broker.bootstrap_servers)
            broker.stop()
        command = [str(java.executable), *jvm_options, *QUIET, "-Xshare:dump", f"-XX:SharedClassListFile={loaded}"]
        command += [f"-XX:SharedArchiveFile={fresh}", "-cp", classpath]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ENVIRONMENT)
        if done.returncode != 0 or not fresh.is_file():
            raise EmbeddedError(f"{java.executable} wrote no class archive: {done.stdout}{done.stderr}".strip())
        os.replace(fresh, path)
    return path


def _use(servers: str) -> None:
    """A transaction with a group's offsets, read by the group: the parts of a broker that programs here use."""
    common: dict[str, str | int] = {"bootstrap.servers": servers, "log_level": 0}
    admin = AdminClient(common)
    admin.create_topics([NewTopic("warm", 1, 1)])["warm"].result(timeout=60)
    producer = Producer(common | {"transactional.id": "warm"})
    producer.init_transactions(60)
    consumer = Consumer(
        common | {"group.id": "warm", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    )
    consumer.subscribe(["warm"])
    producer.begin_transaction()
    producer.produce("warm", b"value")
    producer.flush(60)
    offsets = [TopicPartition("warm", 0, 0)]
    consumer.poll(5)
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
    producer.commit_transaction(60)
    consumer.poll(10)
    consumer.close()


def main() -> None:
    try:
        java, classpath = find_java(), kafka.broker_classpath()
        if not archive_path(java, classpath).is_file():
            print("preparing the Kafka broker ...", file=sys.stderr, flush=True)
            write_archive(java, classpath, kafka.JVM_OPTIONS)
    except CdcError as error:
        # The broker starts without it too, only later.
        print(f"no class archive for the Kafka broker: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
