"""CQL types, their raw bytes, their order and their rendering in records.

In: type spellings as ``system_schema`` has them, raw cells as the native protocol carries them (``bytes``;
``None`` is CQL's null). Out: ``CqlType`` values, Python values, sort keys, JSON text. Pure. Whatever is
malformed raises ``ValueError``: callers that know the table and the column turn it into ``PoisonRow``.
"""
