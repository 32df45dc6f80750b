"""From changes to records: the legacy and the advanced format, schemas, transforms, JSON and Avro bytes.

In: ``Change``s and a connector's ``OutputConfig``. Out: ``Record``s. Pure: the Schema Registry is handed
in. The worker makes one ``Encoder`` and calls ``encode`` for every change, ``schema_record`` for every
version of a table and ``heartbeat`` when a beat is due. The ``read`` command calls ``batch_document``.
"""

from __future__ import annotations

from connector.formats.encoder import Encoder
from connector.formats.json_converter import to_json
from connector.formats.outline import Outline, OutlineSide
from connector.formats.readable import batch_document
from connector.formats.record import Record
from connector.formats.routing import routed_topics
from connector.formats.schema_checks import refused_schemas
from connector.formats.step_options import step_options
from connector.formats.transforms import check_transform, output_chain

__all__ = [
    "Encoder",
    "Outline",
    "OutlineSide",
    "Record",
    "batch_document",
    "check_transform",
    "output_chain",
    "refused_schemas",
    "routed_topics",
    "step_options",
    "to_json",
]
