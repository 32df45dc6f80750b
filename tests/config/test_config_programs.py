"""Connectors and workers in files that are programs: Dockerfiles, Terraform, ksqlDB's statements, values of charts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.config import load
from connector.config.forms.dockerfile import image_variables
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
