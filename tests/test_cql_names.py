"""Names of CQL as texts spell them."""

from __future__ import annotations

from connector.cql_names import qualified, quote_identifier


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quote_identifier(name) for name in ("v", "V", "from", "a b", 'q"', "1a", "list")] == [
        "v",
        '"V"',
        '"from"',
        '"a b"',
        '"q"""',
        '"1a"',
        "list",
    ]


def test_a_keyspace_and_its_table_are_quoted_each() -> None:
    assert qualified("Shop", 'o"') == '"Shop"."o"""'
