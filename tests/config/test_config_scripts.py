"""Connectors and workers in scripts that post them or run containers, and in pages that show how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.config import load
from connector.config.forms.scripts import posted_connectors
from connector.errors import ConfigurationError
from tests.config.files import CLASS, CONNECTOR, WORKER, read, validate

PUT = f"""#!/bin/bash
curl -s localhost:8083/connectors
curl -X PUT http://localhost:8083/connectors/orders/config -H "Content-Type: application/json" -d '{{
  "connector.class": "{CLASS}", "scylla.cluster.ip.addresses": "'$HOST':9042",
  "scylla.table.names": "k.t", "topic.prefix": "p", "scylla.user": "it'\\''s",
  "scylla.password": "'"${{PW}}"'", "x": "$NOT_HERE"
}}'
"""
POST = """curl --data "{\\"name\\": \\"b\\", \\"config\\": {\\"connector.class\\": \\"S\\", \\"x\\": \\"\\$1 $P\\"}}" \\
  http://localhost:8083/connectors
"""
HERE = """cat <<EOF | curl -d @- localhost:8083/connectors
{"name": "c", "config": {"connector.class": "S", "x": "${P:-p} \\$1"}}
EOF
cat <<'EOF' | curl -d @- localhost:8083/connectors
{"name": "d", "config": {"connector.class": "S", "x": "${P} $1"}}
EOF
"""


HERE_WITH_BACKSLASHES = r"""cat <<EOF | curl -d @- localhost:8083/connectors
{"name": "a", "config": {"connector.class": "S", "x": "^$P\\\\.(.*)\$", "y": "\\\. \"\$ 5\" \
z"}}
EOF
cat <<EOF | curl -X PUT -d @- localhost:8083/connectors/b/config
{"connector.class": "S", "x": "\\\\d"}
EOF
cat <<'EOF' | curl -X PUT -d @- localhost:8083/connectors/c/config
{"connector.class": "S", "x": "^a\\.(.*)$"}
EOF
"""


def test_of_two_backslashes_behind_here_one_is_the_shells(tmp_path: Path) -> None:
    found = read(tmp_path, "create.sh", HERE_WITH_BACKSLASHES)
    assert [(each.texts["name"], each.texts["x"]) for each in found] == [
        ("a", "^${env:P}\\.(.*)$"),
        ("b", "\\d"),
        ("c", "^a\\.(.*)$"),
    ]
    assert found[0].texts["y"] == '\\. "$ 5" z'


def test_a_script_that_puts_a_connector(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "create.sh", PUT)
    assert document.texts == {
        "name": "orders",
        "connector.class": CLASS,
        "scylla.cluster.ip.addresses": "${env:HOST}:9042",
        "scylla.table.names": "k.t",
        "topic.prefix": "p",
        "scylla.user": "it's",
        "scylla.password": "${env:PW}",
        "x": "$NOT_HERE",
    }


@pytest.mark.parametrize(
    ("script", "wanted"),
    [(POST, {"b": "$1 ${env:P}"}), (HERE, {"c": "p $1", "d": "${P} $1"})],
)
def test_what_a_shell_makes_of_quotes(tmp_path: Path, script: str, wanted: dict[str, str]) -> None:
    found = read(tmp_path, "create", f"#!/bin/sh\n{script}")
    assert {each.texts["name"]: each.texts["x"] for each in found} == wanted


RUN = r"""#!/bin/sh
# docker run -e CONNECT_GROUP_ID=nobody
docker run -d --rm -p 8083:8083 --name connect \
  -e CONNECT_BOOTSTRAP_SERVERS="$KAFKA" -e CONNECT_CLIENT_RACK=${RACK:-a} \
  --env CONNECT_GROUP_ID=g --env=CONNECT_OFFSET_STORAGE_TOPIC='positions' \
  -e CONNECT_SASL_JAAS_CONFIG='x required username="a" password="p$x";' -e HANDED_ON \
  confluentinc/cp-kafka-connect:7.8.0
"""


def test_a_container_that_a_script_runs_is_a_worker(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "run.sh", RUN)
    assert document.texts == {
        "bootstrap.servers": "${env:KAFKA}",
        "client.rack": "a",
        "group.id": "g",
        "offset.storage.topic": "positions",
        "sasl.jaas.config": 'x required username="a" password="p$x";',
    }
    bare = "docker run -it -e GROUP_ID=1 -e BOOTSTRAP_SERVERS=k:1 quay.io/debezium/connect:2.7\n"
    (document,) = read(tmp_path, "run", bare)
    assert document.texts == {"group.id": "1", "bootstrap.servers": "k:1"} and not document.notes
    both = tmp_path / "both.sh"
    both.write_text(bare + PUT)
    found = load(both, both, {"HOST": "h", "PW": "hush hush"})
    assert (found.connector.name, found.worker.group_id) == ("orders", "1")


def test_a_container_has_all_the_variables_that_it_is_given(tmp_path: Path) -> None:
    # As it stands there: a container's file knows neither quotes nor comments behind a value.
    file = "# said\nCONNECT_SASL_MECHANISM=PLAIN\nCONNECT_GROUP_ID=file\nCONNECT_CONSUMER_CLIENT_RACK='a $b' # c\n"
    (tmp_path / "connect.env").write_text(file)
    script = (
        "export CONNECT_CLIENT_ID=c\n"
        "docker run --env-file connect.env -eCONNECT_BOOTSTRAP_SERVERS=k:1 --env CONNECT_GROUP_ID=single `\n"
        "  -e CONNECT_CLIENT_RACK -e CONNECT_CLIENT_ID -e NOBODY -e CONNECT_OFFSET_STORAGE_TOPIC=$(hostname) \\\n"
        '  -e ADVERTISED_HOST_NAME=$(hostname) -e CONNECT_REST_ADVERTISED_HOST_NAME="$(hostname)" cp-kafka-connect\n'
    )
    (document,) = read(tmp_path, "run.ps1", script, CONNECT_CLIENT_RACK="r")
    assert document.texts == {
        "bootstrap.servers": "k:1",
        "client.id": "c",
        "client.rack": "${env:CONNECT_CLIENT_RACK}",
        "consumer.client.rack": "'a $b' # c",
        "group.id": "single",
        "sasl.mechanism": "PLAIN",
        "offset.storage.topic": "${env:CONNECT_OFFSET_STORAGE_TOPIC}",
    }
    text = "is made when the script runs: it is taken from the variable CONNECT_OFFSET_STORAGE_TOPIC here"
    assert document.notes == [("offset.storage.topic", text)]
    for content, said in ((None, "There is no such file"), ("some words\n", "must hold lines NAME=value alone")):
        path = tmp_path / "connect.env"
        path.unlink() if content is None else path.write_text(content)
        (document,) = read(tmp_path, "run.ps1", script)
        assert document.problems[0].property == "--env-file" and said in document.problems[0].problem


def test_a_script_runs_its_connector(tmp_path: Path) -> None:
    body = json.dumps({"name": "orders", "config": {**CONNECTOR, "connector.class": CLASS, "scylla.user": "u"}})
    script = tmp_path / "create.sh"
    script.write_text(f"curl -d '{body[:-2]}, \"scylla.password\": \"'$PW'\"}}}}' http://c:8083/connectors\n")
    found = load(script, WORKER, {"PW": "hush hush"})
    assert found.connector.name == "orders" and found.connector.connection.password is not None
    assert "hush hush" not in repr(found)
    with pytest.raises(ConfigurationError, match="the environment variable PW is not set"):
        load(script, WORKER, {})


SETUP = r"""#!/usr/bin/env bash
set -euo pipefail
CONNECT="http://${1:?Usage: $0 host:port}"
SCYLLA="${2:?the address}"
PREFIX="sh"; export NAME="${PREFIX}op-cdc" # in the topics, too
  readonly TABLE='shop.orders'
TASKS=${TASKS:-2}
PASSWORD=$(cat /run/secrets/scylla)
curl -sf -X PUT "${CONNECT}/connectors/$NAME/config" -H 'Content-Type: application/json' \
  -d "{
    \"connector.class\": \"com.scylladb.cdc.debezium.connector.ScyllaConnector\",
    \"scylla.cluster.ip.addresses\": \"${SCYLLA}\", \"tasks.max\": \"$TASKS\",
    \"scylla.user\": \"cdc\", \"scylla.password\": \"${PASSWORD}\",
    \"topic.prefix\": \"${PREFIX}op\", \"scylla.table.names\": \"$TABLE\"
  }" && echo OK
curl -X POST "${CONNECT}/connectors" -d '{"name": "sink-'"$NAME"'", "config": {"connector.class": "x.ElasticSink"}}'
"""


def test_what_a_script_sets_itself_is_known(tmp_path: Path) -> None:
    ours, other = read(tmp_path, "setup.sh", SETUP, TASKS="3", PREFIX="not this one")
    assert ours.texts == {
        "name": "shop-cdc",
        "connector.class": CLASS,
        "scylla.cluster.ip.addresses": "${env:SCYLLA}",
        "tasks.max": "${env:TASKS}",
        "scylla.user": "cdc",
        "scylla.password": "${env:PASSWORD}",
        "topic.prefix": "shop",
        "scylla.table.names": "shop.orders",
    }
    assert other.texts["name"] == "sink-shop-cdc"
    found = load(tmp_path / "setup.sh", WORKER, {"SCYLLA": "db:9042", "PASSWORD": "hush hush"})
    assert (found.connector.name, found.connector.tasks_max) == ("shop-cdc", 2)
    assert [notice for notice in found.notices if "sink-shop-cdc: has no effect here" in notice]


# A registration that posts or puts, as many do; the comment names no connector.
KEPT = f"""#!/bin/bash
NAME=orders
# curl -X PUT http://c:8083/connectors/old/config -d '{{{{"connector.class": "{CLASS}", "topic.prefix": "old"}}}}'
WHOLE=$(cat <<'JSON'
{{{{"name": "orders", "config": {{{{"connector.class": "{CLASS}", "topic.prefix": "{{0}}"}}}}}}}}
JSON
)
# For PUT /connectors/{{{{name}}}}/config the configuration alone
read -r -d '' FLAT <<'JSON'
{{{{"connector.class": "{CLASS}", "topic.prefix": "shop"}}}}
JSON
cat > /tmp/returns.json <<JSON
{{{{"connector.class": "{CLASS}", "topic.prefix": "$NAME"}}}}
JSON
if curl -sf "http://c:8083/connectors/$NAME"; then
  curl -X PUT "http://c:8083/connectors/${{{{NAME}}}}/config" \\
    -d "$FLAT"
else
  curl -X POST http://c:8083/connectors -d "$WHOLE"
fi
curl -X PUT http://c:8083/connectors/returns/config -d @/tmp/returns.json
"""


def test_a_configuration_that_is_kept_has_the_name_that_it_is_sent_to(tmp_path: Path) -> None:
    shop = {"connector.class": CLASS, "topic.prefix": "shop", "name": "orders"}
    other = {"connector.class": CLASS, "topic.prefix": "orders", "name": "returns"}
    assert [each.texts for each in read(tmp_path, "a.sh", KEPT.format("shop"))] == [shop, other]
    found = [each.texts["topic.prefix"] for each in read(tmp_path, "a.sh", KEPT.format("shop2"))]
    assert found == ["shop2", "shop", "orders"], "what differs is another one"


NEAREST = f"""#!/bin/sh
curl http://c:8083/connectors/others/config
curl -X PUT http://c:8083/connectors/orders/config -d '
  {{"connector.class": "{CLASS}"}}'
curl -X PUT -d "{{\\"connector.class\\": \\"{CLASS}\\", \\"x\\": \\"1\\"}}" http://c:8083/connectors/returns/config
curl http://c:8083/connectors/others/config
"""


def test_a_name_is_the_one_of_the_own_address(tmp_path: Path) -> None:
    assert [each.texts["name"] for each in read(tmp_path, "a.sh", NEAREST)] == ["orders", "returns"]


BRANCHES = f"""#!/bin/sh
TABLE=k.a
[ -z "$TASKS" ] && TASKS=2
NODES=(a b)
LIST=a:1
LIST+=,b:1
if [ "$1" = prod ]; then
  HOST=prod:9042
else
  HOST=test:9042
fi
curl -X PUT c/connectors/a/config -d '{{"connector.class": "{CLASS}", "scylla.table.names": "'$TABLE'",
  "scylla.cluster.ip.addresses": "'"$HOST"'", "tasks.max": '$TASKS', "x": "'"${{NODES}}"'",
  "y": "'$LIST:${{P-2}}'", "z": "'"$P $LIST"'"}}'
TABLE=k.b
curl -X PUT c/connectors/b/config -d "{{\\"connector.class\\": \\"{CLASS}\\", \\"tasks.max\\": ${{TASKS:-9}},
  \\"scylla.table.names\\": \\"$TABLE\\"}}"
"""


def test_a_variable_is_what_it_is_at_its_place(tmp_path: Path) -> None:
    first, second = read(tmp_path, "a.sh", BRANCHES)
    assert first.texts == {
        "name": "a",
        "connector.class": CLASS,
        "scylla.table.names": "k.a",
        "scylla.cluster.ip.addresses": "${env:HOST}",
        "tasks.max": "2",
        "x": "${env:NODES}",
        "y": "a:1,b:1:2",
        "z": "${env:P} a:1,b:1",
    }
    text = "is made when the script runs: it is taken from the variable {} here"
    assert first.notes == [("scylla.cluster.ip.addresses", text.format("HOST")), ("x", text.format("NODES"))]
    assert second.texts == {"name": "b", "connector.class": CLASS, "scylla.table.names": "k.b", "tasks.max": "2"}


LOOPS = f"""#!/bin/bash
TABLES=("orders"
  'returns')
LIST="a b"; PREFIX=p
for t in "${{{{TABLES[@]}}}}"; do
  until curl -sf c; do sleep 1; done
  curl -X PUT "c/connectors/cdc-$t/config" -d "{{{{\\"connector.class\\": \\"{CLASS}\\", \\"x\\": \\"ks.$t\\"}}}}"
done
for x in {{0}}
do NAME=two-$x; for y in 1 2; do
  cat <<EOF | curl -X PUT c/connectors/$NAME-$y/config -d @-
{{{{"connector.class": "{CLASS}", "x": "$PREFIX.$x"}}}}
EOF
done; done
"""


def test_a_loop_over_words_posts_a_connector_for_each(tmp_path: Path) -> None:
    found = [
        (each.texts["name"], each.texts["x"]) for each in read(tmp_path, "a.sh", LOOPS.format("$LIST ${PREFIX}-c"))
    ]
    assert found[:2] == [("cdc-orders", "ks.orders"), ("cdc-returns", "ks.returns")]
    rounds = [("two-a", "p.a"), ("two-b", "p.b"), ("two-p-c", "p.p-c")]
    assert found[2:] == [(f"{name}-{y}", x) for name, x in rounds for y in (1, 2)]


@pytest.mark.parametrize("words", ["$(ls)", "*.json", '"$@"', "{a,b}", "$NOBODY", "${NOBODY[@]}", "`ls`", "$LIST$1"])
def test_a_loop_over_what_nobody_knows_is_told(tmp_path: Path, words: str) -> None:
    *known, document = read(tmp_path, "a.sh", LOOPS.format(words))
    assert len(known) == 2 and document.texts == {"connector.class": CLASS}
    text = "Is another one in each round of a loop, or call of a function, which only running the script tells"
    assert [(each.property, each.problem) for each in document.problems] == [("x", text), ("name", text)]


def test_what_a_function_is_called_with_is_told(tmp_path: Path) -> None:
    put = 'curl -X PUT c/connectors/a/config -d \'{"connector.class": "C", "x": "\'$table\'", "y": "\'$known\'"}\''
    (document,) = read(tmp_path, "a.sh", f"put() {{\n  local name=$1 table=$2 known='k'\n  {put}\n}}\nput a b\n")
    assert [each.property for each in document.problems] == ["x"]
    assert document.texts == {"name": "a", "connector.class": "C", "y": "k"}
    (document,) = read(tmp_path, "b.sh", f"cat tables | while IFS=, read -r name table; do\n{put}\ndone\n")
    assert [each.property for each in document.problems] == ["x"]


@pytest.mark.parametrize(
    "line",
    [
        "source .env",
        ". ./.env",
        'source "$(dirname "$0")/.env"',
        "set -a && . $HERE/.env && set +a",
        "if [ -f .env ]; then source .env; fi",
        "export $(grep -v '^#' .env | xargs)",
    ],
)
def test_variables_that_a_script_reads_from_a_file_beside_it(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_bytes(b"# SCYLLA=old\r\nSCYLLA=s:9042\r\nPASSWORD='hush hush'\r\n")
    put = f'curl -X PUT c/connectors/a/config -d \'{{"connector.class": "{CLASS}", "x": "\'$SCYLLA\'"}}\'\n'
    (document,) = read(tmp_path, "a.sh", f"#!/bin/sh\n# source other.env\n{line}\n{put}")
    assert document.texts == {"name": "a", "connector.class": CLASS, "x": "s:9042"}
    (tmp_path / ".env").unlink()
    (document,) = read(tmp_path, "a.sh", f"#!/bin/sh\n{line}\n{put}")
    assert document.texts["x"] == "${env:SCYLLA}"


@pytest.mark.parametrize(
    "value", ["$(cat /run/pw)", "`cat /run/pw`", "$1", "${1:-x}", "${P%,}", "${P:=x}", "${#P[@]}", "p$$"]
)
@pytest.mark.parametrize(
    "around", ['"{\\"connector.class\\": \\"C\\", \\"x\\": \\"%s\\"}"', '\'{"connector.class": "C", "x": "\'"%s"\'"}\'']
)
def test_what_only_running_a_script_tells_is_told(tmp_path: Path, value: str, around: str) -> None:
    script = f"curl -X PUT c/connectors/a/config -d {around % value}\n"
    (document,) = read(tmp_path, "a.sh", script, P="set", SECRET="hush")
    assert document.texts == {"name": "a", "connector.class": "C"}
    (problem,) = document.problems
    assert (problem.property, problem.problem) == ("x", "Is an expression, which only running the script tells")


def test_a_dollar_alone_is_one(tmp_path: Path) -> None:
    script = r"""curl -X PUT c/connectors/a/config -d "{\"connector.class\": \"C\", \"x\": \"5$ \$x $/ \${a:b}\"}" """
    (document,) = read(tmp_path, "a.sh", script)
    assert document.texts["x"] == "5$ $x $/ ${a:b}"


BROKEN = {
    "behind a": ('{"name": "x", "config": {"connector.class": "C", "a": "1" "b": "2"}}', "a comma is missing"),
    "behind b": ('{"connector.class": "C", "b": "1",}', "a comma with nothing behind it"),
    "behind c": ('{"name": "x", "config": {"connector.class": "C", "c": "1"},}', "a comma with nothing behind it"),
    "behind d": ('{"d": 4, // four\n"connector.class": "C"}', "a comment"),
}
GOOD = 'curl h/connectors/good/config -d \'{"connector.class": "C"}\'\n'


@pytest.mark.parametrize("name", ["post.sh", "page.md", "page.adoc", "page.rst", "requests.http"])
@pytest.mark.parametrize(("place", "broken"), BROKEN.items(), ids=BROKEN)
def test_a_connector_in_what_is_no_json_is_not_passed_over(
    tmp_path: Path, name: str, place: str, broken: tuple[str, str]
) -> None:
    posted, said = broken
    script = f"curl h/connectors -d '{posted}'\n"
    for text, wanted in ((script, [["C"]]), (GOOD + script, [[], ["C"]]), (script + GOOD, [["C"], []])):
        documents = read(tmp_path, name, text)
        told = [[each.problem for each in document.problems] for document in documents]
        assert told == [[f"Is not JSON: {said} {place}"] if each else [] for each in wanted]
        assert [document.texts["connector.class"] for document in documents] == ["C"] * len(wanted)


def test_what_no_connector_is_in_may_be_no_json(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "post.sh", 'cat <<E\n{"some": thing, "other": 1,}\nE\n' + GOOD)
    assert (document.texts["name"], document.problems) == ("good", [])


def test_a_script_says_what_its_json_has_twice(tmp_path: Path) -> None:
    posted = '{"name": "x", "config": {"connector.class": "C", "a": "1", "b": "2", "a": "1", "b": "3"}}'
    (document,) = read(tmp_path, "post.sh", f"curl h/connectors -d '{posted}'\n")
    assert [(each.property, each.problem) for each in document.problems] == [("b", "Is given twice")]


def test_a_page_that_shows_a_properties_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Start\n\n```\nname = x\nconnector.class = C\n```\n")
    (problem,) = validate(tmp_path / "page.md", WORKER, {})
    assert "a file of their own: .properties" in str(problem.suggestion)


def test_a_script_that_posts_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "create.sh").write_text("curl -X POST --data @connectors/orders.json http://c:8083/connectors\n")
    (problem,) = validate(tmp_path / "create.sh", WORKER, {})
    assert problem.suggestion == "give what it posts: connectors/orders.json"


def test_a_program_of_another_language_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "register.py").write_text('requests.put(url, json={"connector.class": NAME})\n')
    (problem,) = validate(tmp_path / "register.py", WORKER, {})
    assert (problem.property, problem.problem) == ("file", "Is a program, and only running it tells what it posts")


def test_braces_without_end_are_given_up() -> None:
    assert posted_connectors('{"a":' * 20_000, {}) == []
