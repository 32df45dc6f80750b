"""Flattening of change records: pure functions over decoded records, standard library only.

transform = build_transform("extract-new-state", {"add.fields": "op,source.ts_us"})
row = transform(Record("shop.orders", key={"id": 1}, value=envelope))    # None where the record is dropped
"""

from smt.errors import OptionProblem, SmtError, SmtOptionError, SmtRecordError
from smt.record import Record, Schema
from smt.transform import TYPES, Transform, build_transform

__all__ = [
    "TYPES",
    "OptionProblem",
    "Record",
    "Schema",
    "SmtError",
    "SmtOptionError",
    "SmtRecordError",
    "Transform",
    "build_transform",
]
