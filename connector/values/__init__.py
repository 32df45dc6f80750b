"""CQL types, their raw bytes, their order and their rendering in records. Pure."""
