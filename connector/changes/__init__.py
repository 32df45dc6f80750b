"""Table descriptions; log rows to batches to changes. Pure: knows no JSON, Avro or Kafka."""
