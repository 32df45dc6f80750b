"""A CQL server that logs changes exactly as ScyllaDB does. A double for tests and demos, not a database."""
