"""Landing: Spark jobs that make lakehouse tables equal to their ScyllaDB source."""
