"""Tables of ``docs/configuration.md`` that no declaration holds: the forms of files, and what is refused.

In: nothing. Out: rows of cells, the heading first.
"""

from __future__ import annotations

FORMS = (
    (
        "form",
        "connector",
        "worker",
    ),
    (
        "JSON",
        'as POSTed to Kafka Connect (`{"name": …, "config": {…}}`) or flat with `name`; '
        "Connect's answers (`GET /connectors/NAME`, `?expand=info`); MSK Connect's "
        "`connectorConfiguration`; a list of these",
        "a flat object",
    ),
    (
        "`.properties`",
        "as for `connect-standalone`; read as Java reads it, in UTF-8 or else ISO-8859-1",
        "`connect-standalone.properties`, `connect-distributed.properties`",
    ),
    (
        "YAML (`.yaml`, `.yml`)",
        "Strimzi's and Aiven's `KafkaConnector`, Confluent's, Conduktor's and Crossplane's `Connector`; "
        "or the properties alone",
        "Strimzi's `KafkaConnect` (`spec.config` and `bootstrapServers`), Confluent's `Connect` (`configOverrides`); "
        "or the properties alone",
    ),
    (
        "resources of Kubernetes",
        "files of connectors in ConfigMaps and Secrets",
        "`CONNECT_…` of pods (Deployments, StatefulSets, …), with the ConfigMaps and Secrets of the same file; a file "
        "of a worker in a ConfigMap",
    ),
    (
        "programs",
        "scripts (`.sh`) and Makefiles that post JSON with `curl` or HTTPie; `CREATE SOURCE CONNECTOR` of "
        "ksqlDB (`.sql`, `.ksql`); Terraform's `aws_mskconnect_connector`, "
        "`confluent_connector` and others (`.tf`, or what `terraform show -json` says)",
        "`ENV CONNECT_…` of a Dockerfile, `docker run -e CONNECT_…` of a script; values of the charts "
        "`cp-kafka-connect` and Redpanda's `connectors`",
    ),
    (
        "inside of YAML and JSON of other tools",
        "objects with a `connector.class`, and commands that post one: compose files, Kubernetes' Jobs, tasks of "
        "Ansible, workflows, values of charts, collections of requests ([migration](migration.md#deployments))",
        "",
    ),
    (
        "variables",
        "",
        "`CONNECT_…` in the environment, in an `.env` file, of one service of a compose file, of a task of ECS, or in "
        "what `docker inspect` says; those of Debezium's and Redpanda's images too "
        "([migration](migration.md#deployments))",
    ),
)

IMPOSSIBLE = (
    (
        "property",
        "why",
        "what to do",
    ),
    (
        "`connector.class` of another connector",
        "this service is one connector",
        "run the others where they are",
    ),
    (
        "`transforms.*.type`, `predicates.*.type` of other classes",
        "records would look different",
        "apply them behind Kafka, or leave them out",
    ),
    (
        "converters of Protobuf, JSON Schema and CloudEvents, of AWS Glue's registry and of Azure's",
        "records would look different",
        "`JsonConverter` or `AvroConverter`",
    ),
    (
        "references to secrets elsewhere than in the environment, files, directories, Vault, AWS Secrets Manager",
        "the secret cannot be looked up",
        "have it written into a file or a variable",
    ),
    (
        "`acks`, `enable.idempotence` with other values, unless `exactly.once.support=disabled`",
        "exactly once depends on them",
        "leave them out; with `exactly.once.support=disabled` they are taken: a leader that is lost takes records with "
        "it then, although their positions are committed",
    ),
    (
        "`transactional.id`, `isolation.level`, `enable.auto.commit` with other values",
        "exactly once, or who owns a slot, depends on them",
        "leave them out",
    ),
    (
        "`partitioner.class`, `partitioner.ignore.keys`",
        "the order of a key needs its partition",
        "leave them out",
    ),
    (
        "`group.protocol=consumer`",
        "a worker that comes back would wait for its predecessor",
        "leave it out",
    ),
    (
        "`ssl.engine.factory.class`, callback handlers and login modules that are classes of the JVM",
        "they cannot be loaded",
        "the properties of TLS and logins above",
    ),
    (
        "`cdc.include.before`, `cdc.include.after` with the legacy format",
        "as in the Java connector",
        "`cdc.output.format=advanced`",
    ),
    (
        "Strimzi's `KafkaConnect` with `spec.tls` or `spec.authentication`",
        "they name secrets of a Kubernetes cluster",
        "`security.protocol`, `ssl.…` and `sasl.…` in a worker file",
    ),
)


def table(rows: tuple[tuple[str, ...], ...]) -> str:
    """The rows as Markdown."""
    lines = ["| " + " | ".join(row) + " |\n" for row in rows]
    return "".join((lines[0], "|" + "---|" * len(rows[0]) + "\n", *lines[1:]))
