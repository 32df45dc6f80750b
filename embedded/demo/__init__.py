"""The demo's parts: a schema, a seeded workload, the connector as a service, what came out of Kafka, the comparison.

Each is a module of its own; `scylla-cdc demo` puts them together.
"""
