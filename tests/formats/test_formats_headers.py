"""Keys in headers: readable by default, Java's texts in the strict mode (recorded from JDK 21, time zone UTC)."""

from __future__ import annotations

import ipaddress
import uuid
from decimal import Decimal
from typing import Any

import pytest

from connector.formats.encoder import Encoder
from connector.formats.headers import iso_date, iso_timestamp, java_text, java_timestamp
from tests.formats.golden import NOW_NS
from tests.formats.options import output_options
from tests.formats.rows import Log, table

HEADERS = {"cdc.output.format": "advanced", "cdc.include.primary-key.placement": "kafka-key,kafka-headers"}
UUID = uuid.UUID("453662fa-db4b-4938-9033-d8523c0a371c")


@pytest.mark.parametrize(
    ("spelled", "value", "readable", "strict"),
    [
        ("int", -7, "-7", "-7"),
        ("text", 'a "b"', 'a "b"', 'a "b"'),
        ("boolean", True, "true", "true"),
        ("double", 1e10, "1.0E10", "1.0E10"),
        ("double", float("nan"), "NaN", "NaN"),
        ("float", 0.5, "0.5", "0.5"),
        ("decimal", Decimal("1.50"), "1.50", "1.50"),
        ("uuid", UUID, str(UUID), str(UUID)),
        ("inet", ipaddress.ip_address("::ffff:1.2.3.4"), "0:0:0:0:0:ffff:102:304", "1.2.3.4"),
        ("time", 1, "1", "1"),
        ("blob", b"\xca\xfe", "yv4=", "java.nio.HeapByteBuffer[pos=0 lim=2 cap=2]"),
        ("timestamp", 1718022896789, "2024-06-10T12:34:56.789Z", "Mon Jun 10 12:34:56 UTC 2024"),
        ("timestamp", -1, "1969-12-31T23:59:59.999Z", "Wed Dec 31 23:59:59 UTC 1969"),
        ("date", 19884, "2024-06-10", "Mon Jun 10 00:00:00 UTC 2024"),
        ("date", -719162, "0001-01-01", "Sat Jan 01 00:00:00 UTC 1"),
        # In the record its days go round to the far future, in Java's header they do not.
        ("date", -(2**31), "-5877641-06-23", "Thu Jun 23 00:00:00 UTC 5877642"),
        ("frozen<list<text>>", ["a", "b"], '["a","b"]', "[a, b]"),
    ],
)
def test_texts(spelled: str, value: Any, readable: str, strict: str) -> None:
    log = Log(table({"pk": spelled}))
    found = []
    for compatibility in ("default", "strict"):
        encoder = Encoder(output_options(**HEADERS, **{"scylla.compatibility": compatibility}), clock=lambda: NOW_NS)
        (change,) = log.changes(log.row(2, 0, True, pk=value))
        (record,) = encoder.encode(change)
        found.append(record.headers)
    assert found == [[("pk.pk", readable.encode())], [("pk.pk", strict.encode())]]


def test_names_tell_partition_from_clustering_and_nulls_are_left_out() -> None:
    log = Log(table({"z": "int", "b": "int", "a": "int", "s": "int", "v": "int"}, ("z", "b"), ("a",), ("s",)))
    encoder = Encoder(output_options(**HEADERS), clock=lambda: NOW_NS)
    found = []
    for row in (log.row(3, 0, True, z=1, b=2, a=3), log.row(1, 0, True, z=1, b=2, s=4)):
        (change,) = log.changes(row)
        found += [(record.kind, record.headers) for record in encoder.encode(change)]
    whole = [("ck.a", b"3"), ("pk.b", b"2"), ("pk.z", b"1")]
    assert found == [("data", whole), ("tombstone", whole), ("data", whole[1:])]


def test_years_that_do_not_have_four_digits() -> None:
    assert iso_date(2**31 - 1) == "+5881580-07-11"
    assert iso_date(-719529) == "-0001-12-31"
    assert iso_timestamp(-62135596800001) == "0000-12-31T23:59:59.999Z"
    assert java_timestamp(0) == "Thu Jan 01 00:00:00 UTC 1970"
    assert java_timestamp(-62198755200000) == "Fri Jan 03 00:00:00 UTC 2"
    assert java_timestamp(-(2**63)) == "Sun Dec 02 16:47:04 UTC 292269055"


def test_java_texts_of_structs() -> None:
    assert java_text({"a": 1, "b": None, "c": [None, False]}) == "Struct{a=1,c=[null, false]}"
