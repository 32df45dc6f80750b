"""What stands in for servers on one machine: ScyllaDB (a double), Kafka (the real broker), Java, jars."""
