"""Transforms of records: pure functions over decoded records, standard library only.

transform = build_transform("extract-new-state", {"add.fields": "op,source.ts_us"})
row = transform(Record("shop.orders", key={"id": 1}, value=envelope))    # None where the record is dropped
"""

from connector.java_regex import java_pattern
from smt.chain import build_chain
from smt.connect.name_adjustment import name_adjuster
from smt.connect.numbers import java_text
from smt.connect.options import REQUIRED, Option
from smt.connect.predicates import PREDICATES, chosen
from smt.connect.simple_text import simple_text
from smt.errors import OptionProblem, SmtError, SmtOptionError, SmtRecordError
from smt.json_text import json_text, json_value, unwrap, wrap
from smt.options import IN_CELLS, FieldReference
from smt.predicate import build_predicate, ignored_options
from smt.record import Header, Place, Record, Schema
from smt.transform import TYPES, Transform, build_transform, transform_options, transform_type
from smt.unwrapping import Unwrapping, Unwraps

__all__ = [
    "IN_CELLS",
    "PREDICATES",
    "REQUIRED",
    "TYPES",
    "FieldReference",
    "Header",
    "Option",
    "OptionProblem",
    "Place",
    "Record",
    "Schema",
    "SmtError",
    "SmtOptionError",
    "SmtRecordError",
    "Transform",
    "Unwrapping",
    "Unwraps",
    "build_chain",
    "build_predicate",
    "build_transform",
    "chosen",
    "ignored_options",
    "java_pattern",
    "java_text",
    "json_text",
    "json_value",
    "name_adjuster",
    "simple_text",
    "transform_options",
    "transform_type",
    "unwrap",
    "wrap",
]
