"""scylla-cdc: streams the changes of ScyllaDB tables to Kafka, exactly once.

The rooms of this package and who may import whom are described in ``docs/architecture.md``;
``tests/test_rooms.py`` holds the code to it.
"""

__version__ = "0.1.0"
