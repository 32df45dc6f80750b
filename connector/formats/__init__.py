"""From changes to records: the legacy and the advanced format, schemas, transforms, JSON and Avro bytes.

In: ``Change``s and a connector's ``OutputConfig``. Out: ``Record``s. Pure: the Schema Registry is handed
in. The worker makes one ``Encoder`` and calls ``encode`` for every change, ``schema_record`` for every
version of a table and ``heartbeat`` when a beat is due. The ``read`` command calls ``batch_document``.
"""
