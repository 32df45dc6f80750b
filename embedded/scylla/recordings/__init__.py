"""What servers did with statements, written down: recordings are made on one server and replayed on another.

`record` and `replay` both *play*: statements go to a server in a keyspace of their own, and what it answers, logs and
keeps comes back in the form of a recording. A replay compares that with the recording it came from. The only part of
the double that talks CQL as a client; it is as good for a real ScyllaDB.
"""
