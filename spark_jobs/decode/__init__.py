"""Kafka records to changelog rows: JSON and Avro values in typed columns, bad records with their reason.

In: frames of Kafka records. Out: frames of changelog rows and dead letters.
"""

from __future__ import annotations

from spark_jobs.decode.avro_records import PATIENCE_S, Registry, knows_any
from spark_jobs.decode.record_versions import CELL_TTLS, MADE_BY
from spark_jobs.decode.records import decoded_avro, decoded_json, made_identity, not_fitting, shown_as

__all__ = [
    "CELL_TTLS",
    "MADE_BY",
    "PATIENCE_S",
    "Registry",
    "decoded_avro",
    "decoded_json",
    "knows_any",
    "made_identity",
    "not_fitting",
    "shown_as",
]
