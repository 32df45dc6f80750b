"""Connectors and workers in files that are programs: Dockerfiles, scripts that post, Terraform, values of charts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.config import load
from connector.config.forms.dockerfile import image_variables
from connector.config.forms.scripts import posted_connectors
from connector.errors import ConfigurationError
from tests.config.files import CLASS, CONNECTOR, WORKER, read, validate

# -- Dockerfiles -----------------------------------------------------------------------------------------------

IMAGE = r"""# syntax=docker/dockerfile:1
ARG VERSION=7.8.0
ARG PASSWORD
FROM confluentinc/cp-kafka-connect:${VERSION} AS base
ENV CONNECT_BOOTSTRAP_SERVERS=k:9092 \
    # of all stages
    CONNECT_GROUP_ID="the $VERSION \"group\""
FROM maven AS build
ENV CONNECT_GROUP_ID=other
FROM --platform=linux/amd64 base
ARG TOPIC=positions
ENV CONNECT_OFFSET_STORAGE_TOPIC $TOPIC
ENV CONNECT_SASL_JAAS_CONFIG='x.PlainLoginModule required username="a" password="p$x";' CONNECT_CLIENT_RACK=a\ b
COPY --from=build /x /usr/share/java
CMD ["connect-distributed"]
"""


@pytest.mark.parametrize("name", ["Dockerfile", "connect.Dockerfile", "Containerfile"])
def test_the_variables_of_an_image(tmp_path: Path, name: str) -> None:
    (document,) = read(tmp_path, name, IMAGE)
    assert document.texts == {
        "bootstrap.servers": "k:9092",
        "group.id": 'the 7.8.0 "group"',
        "offset.storage.topic": "positions",
        "sasl.jaas.config": 'x.PlainLoginModule required username="a" password="p$x";',
        "client.rack": "a b",
    }
    assert document.masked("sasl.jaas.config", False) == "********"


def test_what_only_the_build_knows_is_a_reference() -> None:
    assert image_variables("FROM x\nARG P\nENV A=$P B=${P:-b} C=$$ D\n") == (
        {"A": "${env:P}", "B": "b", "C": "$"},
        "x",
    )
    assert image_variables("FROM debezium/connect\nENV GROUP_ID 1\n") == ({"GROUP_ID": "1"}, "debezium/connect")


def test_an_image_without_variables_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\nRUN y\n")
    (problem,) = validate(CONNECTOR, tmp_path / "Dockerfile", {})
    assert problem.problem.startswith("Holds no connector") and "ENV lines with CONNECT_…" in str(problem.suggestion)


# -- scripts ---------------------------------------------------------------------------------------------------

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
    "behind a": ('{"name": "x", "config": {"connector.class": "C", "a": "1" "b": "2"}}', "Expecting ',' delimiter"),
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


# -- Terraform -------------------------------------------------------------------------------------------------

TERRAFORM = f"""
variable "tables" {{
  type    = string
  default = "shop.orders"
}}
variable "password" {{ sensitive = true }}
resource "aws_msk_cluster" "kafka" {{
  name   = "nobody"
  config = {{ a = 1 }}
}}
resource "aws_mskconnect_connector" "orders" {{
  name = "orders"
  connector_configuration = {{
    # what is read
    "connector.class" = "{CLASS}"
    "tasks.max"       = 2 // processes
    "topic.prefix"    = "shop",
    "scylla.table.names" = var.tables
    "scylla.cluster.ip.addresses" = "10.0.0.1:9042"
    "scylla.user" : "cdc\\u0020"
    "scylla.password" = "p${{var.password}}"
    "producer.override.sasl.jaas.config" = "$${{secretsmanager:msk:jaas}}"
  }}
  worker_configuration {{ arn = aws_mskconnect_worker_configuration.x.arn }}
}}
"""


def test_a_connector_of_terraform(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "msk.tf", TERRAFORM)
    assert document.texts == {
        "name": "orders",
        "connector.class": CLASS,
        "tasks.max": "2",
        "topic.prefix": "shop",
        "scylla.table.names": "shop.orders",
        "scylla.cluster.ip.addresses": "10.0.0.1:9042",
        "scylla.user": "cdc ",
        "scylla.password": "p${env:TF_VAR_password}",
        "producer.override.sasl.jaas.config": "${secretsmanager:msk:jaas}",
    }
    (document,) = read(tmp_path, "msk.tf", TERRAFORM, TF_VAR_tables="from.environment")
    assert document.texts["scylla.table.names"] == "${env:TF_VAR_tables}"


def test_what_only_terraform_knows_is_told(tmp_path: Path) -> None:
    content = TERRAFORM.replace('"10.0.0.1:9042"', 'join(",", [for i in local.nodes : "${i}:9042"])')
    (tmp_path / "msk.tf").write_text(content)
    problem, provider = validate(tmp_path / "msk.tf", WORKER, {"TF_VAR_password": "x"})
    assert "There is no provider 'secretsmanager'" in provider.problem
    assert (problem.property, problem.value) == ("scylla.cluster.ip.addresses", None)
    assert problem.problem == "Is an expression, which only Terraform knows"
    assert "`terraform show -json`" in str(problem.suggestion)


def test_a_connector_of_googles(tmp_path: Path) -> None:
    config = {**CONNECTOR, "connector.class": CLASS}
    del config["name"]
    lines = "".join(f'    "{name}" = "{text}"\n' for name, text in config.items())
    content = f"""resource "google_managed_kafka_connector" "o" {{
  connect_cluster = google_managed_kafka_connect_cluster.c.connect_cluster_id
  connector_id    = "orders"
  configs = {{
{lines}  }}
}}
"""
    (document,) = read(tmp_path, "google.tf", content)
    assert document.texts == {**config, "name": "orders"}
    values = {"connector_id": "orders", "name": None, "configs": config}
    resource = {"type": "google_managed_kafka_connector", "name": "o", "values": values}
    shown = {"format_version": "1.0", "values": {"root_module": {"resources": [resource]}}}
    (document,) = read(tmp_path, "state.json", json.dumps(shown))
    assert document.texts == {**config, "name": "orders"}


def test_what_has_no_effect_needs_no_value(tmp_path: Path) -> None:
    """Custom connectors of Confluent Cloud have its logins and ids beside their own properties."""
    maps = """config_sensitive = {
    "kafka.api.key"              = confluent_api_key.a.id
    "kafka.api.secret"           = var.secret
    "confluent.custom.plugin.id" = confluent_custom_connector_plugin.p.id
    "errors.log.enable"          = var.logs
  }
  connector_configuration"""
    content = TERRAFORM.replace("connector_configuration", maps).replace("p${var.password}", "password1")
    content = content.replace("$${secretsmanager:msk:jaas}", "x").replace("aws_mskconnect", "confluent")
    (tmp_path / "cloud.tf").write_text(content)
    notices = "\n".join(load(tmp_path / "cloud.tf", {**WORKER, "listeners": "${env:NOT_HERE}"}, {}).notices)
    for name in ("kafka.api.key", "kafka.api.secret", "confluent.custom.plugin.id", "errors.log.enable", "listeners"):
        assert name in notices


def test_values_that_terraform_reads_by_itself_count_over_defaults(tmp_path: Path) -> None:
    (tmp_path / "terraform.tfvars").write_text(
        '# said\ntables = "shop.items"\npassword = "p\\"$${x}" # said\nmore = {\n  tables = "nobody.s"\n}\n'
    )
    (document,) = read(tmp_path, "msk.tf", TERRAFORM, TF_VAR_tables="from.environment")
    assert document.texts["scylla.table.names"] == "shop.items"
    assert document.texts["scylla.password"] == 'pp"${x}'
    (tmp_path / "b.auto.tfvars").write_text('tables = ["shop.items"]\n')
    (tmp_path / "a.auto.tfvars").write_text('tables = "shop.orders"\npassword = null\n')
    (document,) = read(tmp_path, "msk.tf", TERRAFORM)
    assert document.texts["scylla.table.names"] == "${env:TF_VAR_tables}", "no default is in force"
    (problem, *_) = validate(tmp_path / "msk.tf", WORKER, {"TF_VAR_tables": "shop.orders"})
    assert (problem.property, problem.problem) == ("scylla.password", "Is an expression, which only Terraform knows")


def test_null_is_no_word_of_a_connector(tmp_path: Path) -> None:
    declared = 'variable "user" {\n  default = null\n}\n'
    content = TERRAFORM.replace('"cdc\\u0020"', "var.user")
    (document,) = read(tmp_path, "msk.tf", declared + content)
    assert "scylla.user" not in document.texts


MERGED = f"""
locals {{
  common = {{ "topic.prefix" = local.prefix, "tasks.max" = 2 }}
  prefix = "${{var.stage}}-shop"
}}
variable "stage" {{ default = "prod" }}
resource "kafka-connect_connector" "orders" {{
  name   = "orders-${{var.stage}}"
  config = merge(local.common, {{
    "connector.class" = "{CLASS}"
    "scylla.table.names" = join(",", [
      "shop.orders",
    ])
    "scylla.user" = sensitive(var.stage) # said
    "scylla.query.options.fetch.size" = <<-EOT
      7
    EOT
    "scylla.cluster.ip.addresses" = "h:1"
  }}, local.more)
}}
"""


def test_maps_that_are_merged_and_locals(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "c.tf", MERGED)
    assert document.texts == {
        "name": "orders-prod",
        "topic.prefix": "prod-shop",
        "tasks.max": "2",
        "connector.class": CLASS,
        "scylla.user": "prod",
        "scylla.cluster.ip.addresses": "h:1",
    }
    told = ["scylla.table.names", "scylla.query.options.fetch.size", "local.more"]
    assert [each.property for each in document.problems] == told


@pytest.mark.parametrize(
    "given", ["local.of_elsewhere", 'jsondecode(file("orders.json"))', "each.value", "{ a = " * 99]
)
def test_a_connector_that_only_terraform_knows_is_not_passed_over(tmp_path: Path, given: str) -> None:
    other = f'resource "kafka-connect_connector" "more" {{\n  config = {given}\n}}\n'
    documents = read(tmp_path, "c.tf", MERGED.replace(", local.more", "") + other)
    assert [each.problem for each in documents[1].problems] == ["Is an expression, which only Terraform knows"]


def test_a_file_of_terraform_without_connectors(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('provider "aws" {}\n')
    (problem,) = validate(tmp_path / "main.tf", WORKER, {})
    assert "a connector's resource" in str(problem.suggestion)


def test_two_maps_of_confluents_are_one_connector(tmp_path: Path) -> None:
    content = f"""resource "confluent_connector" "orders" {{
  config_sensitive = {{ "scylla.password" = var.password }}
  config_nonsensitive = {{
    "name" = "orders"
    "connector.class" = "{CLASS}"
  }}
}}
"""
    (document,) = read(tmp_path, "c.tf", content)
    assert document.texts == {
        "name": "orders",
        "connector.class": CLASS,
        "scylla.password": "${env:TF_VAR_password}",
    }


def test_what_terraform_shows(tmp_path: Path) -> None:
    values = {"name": "orders", "connector_configuration": {**CONNECTOR, "connector.class": CLASS}}
    connector = {"type": "aws_mskconnect_connector", "name": "o", "values": values}
    module = {"resources": [{"type": "aws_vpc", "name": "v", "values": {}}, connector]}
    shown = {"format_version": "1.0", "values": {"root_module": {"child_modules": [module]}}}
    (document,) = read(tmp_path, "state.json", json.dumps(shown))
    assert document.texts["name"] == "orders" and load(document, WORKER, {}).connector.name == "orders"


# -- ksqlDB ----------------------------------------------------------------------------------------------------

KSQL = f"""/* CREATE SOURCE CONNECTOR old
   WITH ('a' = 'b'); */
CREATE SOURCE CONNECTOR IF NOT EXISTS orders WITH (
  "connector.class" = '{CLASS}', -- it's ours
  'tasks.max' = 3, 'transforms.r.regex'='(.*);x''y--z', -- 'a' = 'b',
  'scylla.password' = '${{file:/secrets:pw}}'
);
create sink connector `es` with ('connector.class'='io.confluent.x.ElasticsearchSinkConnector');
CREATE STREAM s WITH (kafka_topic='a');
"""


@pytest.mark.parametrize("name", ["create.sql", "create.ksql"])
def test_connectors_that_ksqldb_makes(tmp_path: Path, name: str) -> None:
    ours, other = read(tmp_path, name, KSQL)
    assert ours.texts == {
        "name": "ORDERS",
        "connector.class": CLASS,
        "tasks.max": "3",
        "transforms.r.regex": "(.*);x'y--z",
        "scylla.password": "${file:/secrets:pw}",
    }
    assert other.texts["name"] == "es"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE STREAM s;", "Holds no connector and no worker that can be read"),
        ("-- a\nCREATE SOURCE CONNECTOR o WITH ('a' = 'b',\n 'c' 'd');", "Cannot be read from line 2 on"),
    ],
)
def test_statements_of_ksqldb_that_cannot_be_read(tmp_path: Path, statement: str, said: str) -> None:
    (tmp_path / "o.sql").write_text(statement)
    (problem,) = validate(tmp_path / "o.sql", WORKER, {})
    assert problem.problem == said and problem.suggestion


# -- Helm ------------------------------------------------------------------------------------------------------


def test_values_of_confluents_chart(tmp_path: Path) -> None:
    values = {
        "image": "confluentinc/cp-kafka-connect",
        "configurationOverrides": {"key.converter": "x.JsonConverter", "group.id": "g", "offset.storage.topic": "o"},
        "kafka": {"bootstrapServers": "PLAINTEXT://kafka:9092"},
        "cp-schema-registry": {"url": "registry:8081"},
        "customEnv": {"CONNECT_CLIENT_RACK": "a", "OTHER": "b"},
    }
    for content in (values, {"cp-kafka-connect": values, "cp-kafka": {"configurationOverrides": {"a": 1}}}):
        (document,) = read(tmp_path, "values.yaml", json.dumps(content))
        assert document.texts == {
            "bootstrap.servers": "PLAINTEXT://kafka:9092",
            "key.converter.schema.registry.url": "http://registry:8081",
            "value.converter.schema.registry.url": "http://registry:8081",
            "key.converter": "x.JsonConverter",
            "group.id": "g",
            "offset.storage.topic": "o",
            "client.rack": "a",
        }
        said = [name for name, text in document.notes if "made of the release's name" in text]
        assert said == ["status.storage.topic", "config.storage.topic"]


def test_values_of_redpandas_chart(tmp_path: Path) -> None:
    values = {
        "connectors": {
            "bootstrapServers": "r:9093",
            "additionalConfiguration": "client.rack=a",
            "storage": {"topic": {"offset": "positions"}, "replicationFactor": {"offset": -1}},
            "brokerTLS": {"enabled": True, "ca": {"secretRef": "tls", "secretNameOverwrite": "corp.crt"}},
        },
        "auth": {"sasl": {"userName": "cdc", "secretRef": "login"}},
    }
    (document,) = read(tmp_path, "values.yaml", json.dumps(values))
    wanted = {
        "bootstrap.servers": "r:9093",
        "client.rack": "a",
        "group.id": "connectors-cluster",
        "offset.storage.topic": "positions",
        "offset.storage.replication.factor": "-1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "scram-sha-512",
        "sasl.password": "${directory:/opt/kafka/connect-password/rc-credentials:password}",
        "ssl.truststore.certificates": "${directory:/opt/kafka/connect-certs/ca:corp.crt}",
    }
    assert wanted.items() <= document.texts.items()


def test_templates_are_told_to_be_rendered(tmp_path: Path) -> None:
    for name, content in (("c.yaml", "name: {{ .Release.Name }}"), ("c.json", '{"tasks.max": {{ tasks }}}')):
        (tmp_path / name).write_text(content)
        (problem,) = validate(tmp_path / name, WORKER, {})
        assert "it is a template: give what is made of it" in str(problem.suggestion)
