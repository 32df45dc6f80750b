"""Connectors inside of what other tools read: compose files, jobs, Ansible, workflows, requests, charts; Makefiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.config import load, read_documents
from tests.config.files import CLASS, CONNECTOR, WORKER, read, validate

CURL = f"""curl -X PUT http://connect:8083/connectors/orders/config -d '{{"connector.class": "{CLASS}",
  "topic.prefix": "p", "scylla.user": "'$NAME'", "scylla.password": "%s"}}'"""
TEMPLATE = "Is a template, which another tool fills in"


def indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)


def test_a_compose_file_whose_container_posts_the_connector_is_both(tmp_path: Path) -> None:
    config = {**CONNECTOR, "connector.class": CLASS, "scylla.user": "u"}
    del config["name"]
    body = json.dumps(config)[1:-1]
    content = f"""
services:
  connect:
    environment: {{CONNECT_BOOTSTRAP_SERVERS: "k:1", CONNECT_OFFSET_STORAGE_TOPIC: o}}
  init:
    environment: [PREFIX=of-compose, "PW=${{SECRET}}"]
    command: ["/bin/sh", "-c", "until curl connect:8083; do sleep 1; done; sh -c ./x"]
    entrypoint:
      - |
        curl -X PUT connect:8083/connectors/orders/config -d '{{
          {body}, "scylla.password": "'"$$PW"'", "client.id": "$$1 ${{PORT:-9}}", "y": "'$$PREFIX'"
        }}'
"""
    path = tmp_path / "compose.yaml"
    path.write_text(content)
    found = load(path, path, {"SECRET": "hush hush"})
    assert (found.connector.name, found.worker.bootstrap_servers) == ("orders", "k:1")
    connector = read_documents(path, "file", {})[1]
    assert connector.texts["scylla.password"] == "${env:SECRET}" and connector.texts["client.id"] == "$1 9"
    assert connector.texts["y"] == "of-compose"
    path.write_text(content.replace("CONNECT_", "OTHER_"))
    (alone,) = read_documents(path, "file", {})
    assert alone.texts["name"] == "orders" and not alone.problems
    path.write_text(content.replace("  init:", "  second: {environment: {CONNECT_GROUP_ID: g}}\n  init:"))
    assert [each.problem for each in validate(path, path, {"SECRET": "x"})] == [
        "Must have one service with CONNECT_ variables, and has 2: connect, second"
    ]


def test_a_job_that_posts_the_connector(tmp_path: Path) -> None:
    content = f"""
kind: Job
apiVersion: batch/v1
spec:
  template:
    spec:
      containers:
        - env: [{{name: NAME, value: it's}}, {{name: PW, valueFrom: {{secretKeyRef: {{name: s, key: p}}}}}}]
          args:
            - |
              {indented(CURL % "'$PW'", 14)}
"""
    (document,) = read(tmp_path, "job.yaml", content)
    assert document.texts == {
        "name": "orders",
        "connector.class": CLASS,
        "topic.prefix": "p",
        "scylla.user": "it's",
        "scylla.password": "${env:PW}",
    }


STACK = f"""
Resources:
  Source:
    Type: AWS::KafkaConnect::Connector
    Properties:
      ConnectorName: %s
      ConnectorConfiguration:
        connector.class: {CLASS}
        topic.prefix: !Ref Prefix
        scylla.table.names: k.t
      ServiceExecutionRoleArn: !GetAtt [Role, Arn]
"""


def test_a_stack_of_cloudformation(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "stack.yaml", STACK % "orders")
    assert document.texts == {"name": "orders", "connector.class": CLASS, "scylla.table.names": "k.t"}
    assert [(each.property, each.problem) for each in document.problems] == [("topic.prefix", TEMPLATE)]
    assert document.notes == [
        ("ServiceExecutionRoleArn", "has no effect here: it is for the tool that reads this file")
    ]
    (document,) = read(tmp_path, "stack.yaml", STACK % "!Sub '${Stage}-orders'")
    assert ("name", TEMPLATE) in [(each.property, each.problem) for each in document.problems]


def test_a_plain_word_of_an_environment_is_what_a_shell_sees(tmp_path: Path) -> None:
    script = CURL.replace("'$NAME'", "'$TOMBSTONES'-'$TASKS'") % "x"
    for given in ("env: {TOMBSTONES: true, TASKS: 1e1}", "variables: {TOMBSTONES: yes, TASKS: 10}"):
        content = f"{given}\nsteps:\n  - run: |\n      {indented(script, 6)}\n"
        (document,) = read(tmp_path, "steps.yaml", content)
        assert document.texts["scylla.user"] == "true-10"


def test_a_workflow_that_posts_the_connector(tmp_path: Path) -> None:
    content = f"""
on: push
env: {{NAME: "${{{{ vars.USER_NAME }}}}"}}
jobs:
  deploy:
    steps:
      - uses: actions/checkout
      - run: |
          {indented(CURL % "${{ secrets.PW }}", 10)}
"""
    (document,) = read(tmp_path, "deploy.yml", content)
    assert (document.texts["scylla.user"], document.texts["scylla.password"]) == ("${env:USER_NAME}", "${env:PW}")


def test_tasks_of_ansible(tmp_path: Path) -> None:
    content = f"""
- hosts: connect
  vars: {{settings: {{connector.class: {CLASS}}}}}
  tasks:
    - name: register
      ansible.builtin.uri:
        url: http://localhost:8083/connectors/orders/config
        body_format: json
        body: {{connector.class: {CLASS}, topic.prefix: p, scylla.password: "{{{{ pw }}}}"}}
    - name: register
      uri: {{url: "http://localhost:8083/connectors", body: {{name: returns, config: {{connector.class: {CLASS}}}}}}}
"""
    settings, orders, returns = read(tmp_path, "play.yaml", content)
    assert settings.texts == {"connector.class": CLASS}, "what a variable is called names no connector"
    assert orders.texts == {"name": "orders", "connector.class": CLASS, "topic.prefix": "p"}
    assert [(each.property, each.problem) for each in orders.problems] == [("scylla.password", TEMPLATE)]
    assert returns.texts == {"name": "returns", "connector.class": CLASS} and not returns.problems


def test_requests_that_are_kept(tmp_path: Path) -> None:
    raw = json.dumps({"connector.class": CLASS, "scylla.password": "{{pw}}"})
    request = {"url": {"raw": "{{c}}/connectors/orders/config"}, "body": {"mode": "raw", "raw": raw}}
    (document,) = read(tmp_path, "collection.json", json.dumps({"info": {"name": "c"}, "item": [{"request": request}]}))
    assert document.texts == {"name": "orders", "connector.class": CLASS}
    assert [each.property for each in document.problems] == ["scylla.password"]


def test_values_of_a_chart_of_ones_own(tmp_path: Path) -> None:
    content = f"""
image: x
connectors:
  orders: {{connector.class: {CLASS}, topic.prefix: p}}
  returns: {{config: {{connector.class: {CLASS}}}}}
more:
  - {{name: third, state: running, config: {{connector.class: {CLASS}}}}}
"""
    found = read(tmp_path, "values.yaml", content)
    assert [each.texts["name"] for each in found] == ["orders", "returns", "third"]
    assert found[2].notes == [("state", "has no effect here: it is for the tool that reads this file")]


def test_what_connectors_of_a_file_have_in_common_is_none_itself(tmp_path: Path) -> None:
    common = f"defaults: &common\n  connector.class: {CLASS}\n  topic.prefix: p\n"
    content = common + "connectors:\n  orders: &orders\n    <<: *common\n  returns:\n    <<: [*common, *orders]\n"
    assert [each.texts["name"] for each in read(tmp_path, "all.yaml", content)] == ["orders", "returns"]
    (alone,) = read(tmp_path, "one.yaml", common)
    assert alone.texts["topic.prefix"] == "p"


@pytest.mark.parametrize(
    "content",
    [
        "name: ci\non: [push]\njobs: {test: {steps: [{run: make}]}}\n",
        # A topology of JulieOps, which names files of connectors.
        "context: acme\nprojects: [{name: shop, connectors: {artefacts: [{path: orders.json, name: orders}]}}]\n",
    ],
)
def test_a_file_of_a_tool_without_any_connector_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tool.yaml"
    path.write_text(content)
    for problem in (*validate(path, WORKER, {}), *validate(CONNECTOR, path, {})):
        assert problem.problem == "Holds no connector and no worker"


def test_what_is_a_configuration_itself_is_not_looked_into(tmp_path: Path) -> None:
    inner = {"x": {"connector.class": CLASS}}
    for content in ({"connector.class": CLASS, **inner}, {"name": "a", "config": {"connector.class": CLASS}, **inner}):
        (document,) = read(tmp_path, "c.json", json.dumps(content))
        assert [each.property for each in document.problems] == ["x"]
    deep: object = {"connector.class": CLASS}
    for _ in range(300):
        deep = {"a": [deep]}
    (document,) = read(tmp_path, "c.json", json.dumps(deep))
    assert document.texts == {"connector.class": CLASS}


@pytest.mark.parametrize("name", ["Makefile", "connect.mk"])
def test_a_makefile_that_posts_the_connector(tmp_path: Path, name: str) -> None:
    content = f"""
URL ?= http://c:8083
TABLE := k.$(T)
T = t
HOSTS = a:1, \\
  b:1
HOSTS += ,$(OTHERS)
NOBODY = $(shell hostname)
register: wait
\t@curl -X PUT ${{URL}}/connectors/orders/config -d "{{\\"connector.class\\": \\"{CLASS}\\", \\"x\\": \\"\\$$1\\", \\
\t  \\"scylla.cluster.ip.addresses\\": \\"$(HOSTS)\\", \\"scylla.table.names\\": \\"$(TABLE).$(T)\\", \\
\t  \\"scylla.password\\": \\"$$PW\\", \\"y\\": \\"$(NOBODY)\\"}}"
""".replace("\\t", "\t")
    (document,) = read(tmp_path, name, content, URL="http://other")
    assert document.texts == {
        "name": "orders",
        "connector.class": CLASS,
        "scylla.table.names": "k.${env:T}.t",
        "x": "$1",
        "scylla.cluster.ip.addresses": "a:1, b:1 ,${env:OTHERS}",
        "scylla.password": "${env:PW}",
    }
    assert [each.property for each in document.problems] == ["y"]
    (document,) = read(tmp_path, name, "A = $(A)$(A)\nx:\n\tcurl -d @connectors/orders.json $(A)\n")
    assert document.problems[0].suggestion == "give what it posts: connectors/orders.json"


@pytest.mark.parametrize("head", ["apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", ""])
def test_a_kustomization_is_told_to_be_made(tmp_path: Path, head: str) -> None:
    (document,) = read(tmp_path, "kustomization.yaml", f"{head}resources: [a.yaml]\n")
    assert document.problems[0].suggestion == "give what is made of it: `kubectl kustomize FOLDER > all.yaml`"
