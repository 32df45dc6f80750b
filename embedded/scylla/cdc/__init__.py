"""CDC of the embedded ScyllaDB: options, log tables, and the log rows that each write leaves."""
