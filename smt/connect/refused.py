"""Classes of others that users have in their files, and cannot have here: why, and what does the same.

In: a class name. Out: the reason with the way out, or None for a name that is not known.
"""

from __future__ import annotations

from typing import Final

_SCRIPT: Final = "its condition is a script in Groovy or JavaScript, for which there is no engine here"
_CONSUMER: Final = "do it where records are read, in the consumer or the Connect of a sink"
_OTHER_DATABASE: Final = "it is for another database's records"
_NO_GEOMETRY: Final = "there are no geometries in CQL: take the transform out"
_PARTITION: Final = "the key alone decides the partition, so that changes of a row stay in order"
_DEBEZIUM: Final = "io.debezium.transforms."
_CONFLUENT: Final = "io.confluent.connect.transforms."

#: By their full names, without `$Key` and `$Value`.
REFUSED: Final = {
    f"{_DEBEZIUM}Filter": f"{_SCRIPT}: skipped.operations drops operations, Connect's Filter with a predicate drops "
    "records by topic or header",
    f"{_DEBEZIUM}ContentBasedRouter": f"{_SCRIPT}: extract-new-state with route.by.field routes by a column",
    f"{_DEBEZIUM}UnwrapFromEnvelope": "Debezium has called it ExtractNewRecordState since 0.10; "
    "extract-new-state unwraps cells as well",
    f"{_DEBEZIUM}HeaderToValue": f"nothing here moves headers into values: {_CONSUMER}",
    f"{_DEBEZIUM}ExtractChangedRecordState": "nothing here names the columns that changed: cdc.output.format=legacy "
    "tells untouched columns from those that were set to null",
    f"{_DEBEZIUM}ExtractSchemaToNewRecord": "the topic scylla.schema.topic has the description of every table",
    f"{_DEBEZIUM}SchemaChangeEventFilter": "there are no records of schema changes among those of the tables",
    f"{_DEBEZIUM}TimezoneConverter": "times are UTC, as in CQL, and TimestampConverter formats them: other zones are "
    "for whoever reads the records",
    f"{_DEBEZIUM}ConvertCloudEventToSaveableForm": "it is for sinks, and CloudEvents are not written here",
    f"{_DEBEZIUM}VectorToJsonConverter": "vectors are arrays already",
    f"{_DEBEZIUM}EnforceRecordSize": "values are never cut here: ReplaceField behind ExtractNewRecordState "
    "drops columns, and producer.override.max.request.size is how large a record may be",
    f"{_DEBEZIUM}GeometryFormatTransformer": _NO_GEOMETRY,
    f"{_DEBEZIUM}SwapGeometryCoordinates": _NO_GEOMETRY,
    f"{_DEBEZIUM}openlineage.OpenLineage": "lineage is not told to OpenLineage here: take the transform out",
    f"{_DEBEZIUM}partitions.PartitionRouting": _PARTITION,
    f"{_DEBEZIUM}partitions.ComputePartition": _PARTITION,
    f"{_DEBEZIUM}outbox.EventRouter": "it makes events of the rows of an outbox table, which nothing here does: "
    f"{_CONSUMER}; extract-new-state with route.by.field routes rows by a column, ValueToKey takes columns as the key",
    f"{_DEBEZIUM}tracing.ActivateTracingSpan": "spans of OpenTelemetry are not passed on here",
    f"{_CONFLUENT}Filter": "conditions of JSONPath are not understood here: skipped.operations drops operations, "
    "Connect's Filter with a predicate drops records by topic or header",
    f"{_CONFLUENT}ExtractTopic": "extract-new-state with route.by.field routes by a column, RegexRouter by the topic",
    f"{_CONFLUENT}TombstoneHandler": "tombstones.on.delete=false writes none, Connect's Filter with the predicate "
    "RecordIsTombstone drops them",
    f"{_CONFLUENT}MessageTimestampRouter": "TimestampRouter routes by the record's time",
    f"{_CONFLUENT}Drop": "nothing here empties keys or values: ReplaceField drops fields, Connect's Filter records",
}
_OF_ANOTHER: Final = "io.debezium.connector."
_BY_SHORT: Final = {name.rpartition(".")[2]: reason for name, reason in REFUSED.items()}


def refusal(name: str) -> str | None:
    """Why a class cannot be had, by its full name or, as those of Connect may be named, by its last part."""
    bare = name.partition("$")[0]
    if bare.startswith(_OF_ANOTHER):
        return f"{_OTHER_DATABASE}; ScyllaExtractNewRecordState or extract-new-state unwraps those of this connector"
    return REFUSED.get(bare) or (None if "." in bare else _BY_SHORT.get(bare))
