"""Changes to records: envelopes, Connect schemas, JSON and Avro bytes. Pure."""
