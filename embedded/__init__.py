"""Servers on one machine, for the demo, tests and trials: a double of ScyllaDB, and a real Kafka broker."""

__version__ = "0.1.0"
