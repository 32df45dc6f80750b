"""All that talks to ScyllaDB: connection, descriptions, stream sets, paged log reads. Knows no Kafka."""
