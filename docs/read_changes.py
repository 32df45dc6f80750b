"""Reading a table's changes from Python: the example of docs/reading.md, on the embedded server."""

from connector.changes import changes_of
from connector.source.read_changes import ChangeReader
from connector.source.settings import ConnectionSettings, ReadingSettings
from embedded.scylla.process import EmbeddedScylla

CONFIDENCE = ReadingSettings(confidence_ms=300)


def main() -> None:
    with EmbeddedScylla(ring_delay=0) as scylla:
        cql = scylla.admin.cql
        cql("CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}")
        cql("CREATE TABLE shop.orders (id int PRIMARY KEY, state text, total int) WITH cdc = {'enabled': true}")
        cql("INSERT INTO shop.orders (id, state, total) VALUES (1, 'new', 30)")
        cql("UPDATE shop.orders SET state = 'paid' WHERE id = 1")

        where = ConnectionSettings(((scylla.host, scylla.port),))
        with ChangeReader(where, ["shop.orders"], reading=CONFIDENCE) as reader:
            for batch in reader:
                for change in changes_of(batch):
                    print(change.kind, change.key, change.columns)
            checkpoint = reader.checkpoint()  # JSON text: keep it wherever you keep your results

        cql("DELETE FROM shop.orders WHERE id = 1")
        with ChangeReader(where, ["shop.orders"], reading=CONFIDENCE, checkpoint=checkpoint) as reader:
            for batch in reader:
                for change in changes_of(batch):
                    print(change.kind, change.key)


if __name__ == "__main__":
    main()
