"""Reading a table's changes from Python: the example of docs/python.md, on the embedded server."""

import scylla_cdc
from embedded.scylla.process import EmbeddedScylla


def main() -> None:
    with EmbeddedScylla(ring_delay=0) as scylla:
        cql = scylla.admin.cql
        cql("CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}")
        cql("CREATE TABLE shop.orders (id int PRIMARY KEY, state text, total int) WITH cdc = {'enabled': true}")
        cql("INSERT INTO shop.orders (id, state, total) VALUES (1, 'new', 30)")
        cql("UPDATE shop.orders SET state = 'paid' WHERE id = 1")

        with scylla_cdc.ChangeReader(scylla.address, "shop.orders", confidence_ms=300) as reader:
            for change in reader:
                print(change.operation, change.key, change.values)
            checkpoint = reader.checkpoint()  # JSON text: keep it wherever you keep your results

        cql("DELETE FROM shop.orders WHERE id = 1")
        with scylla_cdc.ChangeReader(scylla.address, "shop.orders", confidence_ms=300, checkpoint=checkpoint) as reader:
            for change in reader:
                print(change.operation, change.key)


if __name__ == "__main__":
    main()
