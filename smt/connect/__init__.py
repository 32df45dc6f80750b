"""The transforms of Kafka Connect and of Debezium, one module each, and their registry by Java's class names."""
