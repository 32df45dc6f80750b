"""``docs/configuration.md``, written from the declarations.

``python -m connector.config.document_page > docs/configuration.md``
In: the catalogue. Out: Markdown. A test compares the page in the tree with what this writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from connector.config.converters import AVRO_OPTIONS, JSON_OPTIONS, PLAIN_OPTIONS, STRING_OPTIONS
from connector.config.document_tables import FORMS, IMPOSSIBLE, table
from connector.config.kafka import (
    ADMIN,
    CLIENT_PROPERTIES,
    CONSUMER,
    NATIVE_NAMES,
    PRODUCER,
    SASL_NAMES,
    SASL_WITHOUT_EFFECT,
    SSL_NAMES,
    ClientProperty,
)
from connector.config.properties import (
    CONNECTOR_FAMILIES,
    CONNECTOR_SECTIONS,
    NEIGHBOURS,
    WORKER_FAMILIES,
    WORKER_SECTIONS,
    Effect,
    Family,
    Property,
    Section,
)
from connector.config.transforms import PREDICATES, TRANSFORMS

_HEAD = """# Configuration

<!-- Written by `python -m connector.config.document_page`; a test compares. -->

Two files: the connector's and the worker's. Each may be what Kafka Connect's users have:

%FORMS%
The ending of a file's name tells its form; without one, its first lines do. Values may be texts, numbers or booleans.
Files in UTF-16, which Windows' PowerShell writes, are read as well.
`scylla-cdc validate connector.json --worker worker.properties` reports all problems of both at once, with suggestions
for misspelled names. `scylla-cdc migrate` makes the two JSON files of any of these ([migration.md](migration.md)).

- A property that is unknown here is logged at start and ignored, as in Kafka Connect. One whose name is nearly a known
  one is an error. `config.unknown=error` makes errors of both, `config.unknown=ignore` of neither. See *Names from
  elsewhere*, below. So it is with settings of a transform, a predicate or a group of topics that its list
  (`transforms`, `predicates`, `topic.creation.groups`) does not name.
- A property marked *no effect* is accepted, and logged once at start with the reason.
- Properties marked **ours** are not known to the Java connector; all others have its names, defaults and meaning.
- `${env:NAME}`, `${file:/path:key}` (a `.properties` file) and `${directory:/path:file}` are resolved at start. Other
  names for them can be set with `config.providers`. A path ends at its first colon, as in Kafka; a key may have more.
  Resolved values never appear in a message.
- What they may read can be limited in the worker's file, with Kafka's own parameters: `allowed.paths` of
  `FileConfigProvider` and `DirectoryConfigProvider`, `allowlist.pattern` of `EnvVarConfigProvider`. Whoever may define
  connectors over HTTP can read by references what the service can read. Where one has a limit, the others (`env`,
  `file`, `directory`) are there only if `config.providers` names them, as in Kafka Connect.
- Secrets of HashiCorp Vault and of AWS Secrets Manager are resolved at start too, with the providers and parameters
  that Kafka Connect's users have; see *Secrets from Vault and AWS*, below.
- Passwords and other secrets are always masked.
"""

_STORES_TEXT = """
`config.providers=vault,aws` names providers in the worker's file; `config.providers.<name>.class` is one of the classes
below (its package does not matter), and its parameters follow `config.providers.<name>.param.`. They may hold
references to `env`, `file` and `directory`. Their clients are extras: `pip install 'scylla-cdc[vault]'`,
`'scylla-cdc[aws]'`; in an image, `docker build --build-arg EXTRAS=vault,aws`. A secret is asked for once at start,
and as often as it is named.

| provider | classes | parameters |
|---|---|---|
| HashiCorp Vault | `VaultSecretProvider` (Lenses), `VaultConfigProvider` (Confluent, others) | `vault.addr` or \
`vault.address` (`VAULT_ADDR`, `http://localhost:8200`), `vault.namespace`, `vault.engine.version` or \
`vault.secrets.version` (2), `vault.prefixpath`, `vault.pem`, `vault.ssl.truststore.location`, \
`vault.ssl.truststore.password`, `vault.ssl.verify.enabled`, `vault.auth.method` (`token`), `vault.auth.mount`; for \
`token`: `vault.token` or `vault.auth.token` (`VAULT_TOKEN`); `approle`: `app.role.id` or `vault.auth.role`, \
`app.role.secret.id` or `vault.auth.secret`, `app.role.path`; `userpass`: `username`, `password` or \
`vault.auth.username`, `vault.auth.password`; `ldap`: `ldap.username`, `ldap.password` or the same; `kubernetes`: \
`kubernetes.role` or `vault.auth.role`, `kubernetes.token.path`; `jwt`: `jwt.role`, `jwt` |
| AWS Secrets Manager | `AWSSecretProvider` (Lenses), `SecretsManagerConfigProvider` (Confluent, AWS, others) | \
`aws.region` or `region`, `aws.access.key`, `aws.secret.key` (without them, or with `aws.auth.method=default`, what \
AWS' tools use: variables, profiles, roles), `aws.endpoint.override` or `endpoint.override`, `secret.prefix`, \
`use.json` |

`${vault:secret/shop/scylla:password}` is the key `password` at that path of the key-value engine; with or without
version 2's `data/` behind the mount. `${aws:prod/scylla:password}` is a member of a secret that is a JSON object; the
text of another secret is its `value`. Providers of Kubernetes (`KubernetesSecretConfigProvider`) are refused: mount the
secret, and name its file or variable.
"""

_TRANSFORM_TEXT = """
`transforms=a,b` names steps; `transforms.a.type` is the class of one, and its options follow `transforms.a.`. A step
with `transforms.a.predicate=p` is applied only where the predicate holds, or does not with
`transforms.a.negate=true`. They see data, tombstone, range-delete and heartbeat records.
The options of the ScyllaDB transforms are in `docs/smt.md`.
"""

_CREATION_TEXT = """
Missing topics are created at start, or, with `topic.creation.enable=false`, waited for.
`topic.creation.default.partitions` and `topic.creation.default.replication.factor`
set the numbers (-1, the default: the broker's own), and any other `topic.creation.default.<setting>` is a setting of
the topic, such as `retention.ms`. Groups named in `topic.creation.groups` come first, each with
`topic.creation.<group>.include` and `.exclude` (lists of regular expressions that match whole names).
"""

_CLIENT_TEXT = """
Clients take the names of Java's clients. In the worker's file a name at the top level is for all clients, one behind
`producer.`, `consumer.` or `admin.` for that one; in the connector's file the prefixes are `producer.override.`,
`consumer.override.` and `admin.override.`. Later ones win. The table lists their names in librdkafka.
`compression.<codec>.level` becomes `compression.level` for the codec in use.

`linger.ms` below 5,000 (less where transactions or deliveries have less than 15 s) has no effect on records of
transactions: they are seen when their transaction is committed, which does not wait for it, and until then go in full
batches. It counts with `exactly.once.support=disabled`.
"""

_SECURITY_TEXT = """
**TLS.** `ssl.truststore.location` and `ssl.keystore.location` may be JKS, PKCS12 or PEM files, detected by content
and passed on as PEM in memory; `ssl.truststore.certificates`, `ssl.keystore.certificate.chain` and
`ssl.keystore.key` are PEM text. Cipher suites are translated to their OpenSSL names.

**Logins.** `sasl.jaas.config` with `PlainLoginModule` (PLAIN), `ScramLoginModule` (SCRAM-SHA-256, SCRAM-SHA-512) or
`OAuthBearerLoginModule`. Kerberos (`Krb5LoginModule`) needs a confluent-kafka built with libsasl2.

**OAuth.** Tokens come from the server at `sasl.oauthbearer.token.endpoint.url`: for client credentials (`clientId`,
`clientSecret`, `scope`, `extension_…` of the login module, or `sasl.oauthbearer.client.credentials.client.id` and so
on), or for a signed assertion (`sasl.oauthbearer.jwt.retriever.class` is Kafka's `JwtBearerJwtRetriever`, with
`sasl.oauthbearer.assertion.…`). `ssl.truststore.location` and `ssl.truststore.password` in the login module's options
are for that server. The callback handlers of Kafka and of Strimzi, whose options (`oauth.client.id`,
`oauth.token.endpoint.uri`, …) have the same meaning here, are accepted, as librdkafka does their
work; others are classes of the JVM, and an error.
"""

_ELSEWHERE_TEXT = """
Real files hold names that the Java connector does not read. They are accepted, and each is logged once with the reason
why it does nothing:

- In a connector's file, names of the worker and of Kafka clients (`offset.flush.interval.ms`, `bootstrap.servers`,
  `sasl.mechanism`, `producer.…`): as in Kafka Connect, only the worker's file counts, or `producer.override.…`.
  `config.storage.…`, `group.id` and so on belong there as well. In a worker's file, names of connectors.
- Settings of topics without `topic.creation.default.` in front of them (`cleanup.policy`, `retention.ms`).
- Names of Debezium's other connectors, of its internals and of later versions, and of other connectors and sinks:
"""

_IMPOSSIBLE_TEXT = """
These are errors, whatever `config.unknown` says, because ignoring them would change what is written, or how safely:
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD.replace("%FORMS%", table(FORMS)), "\n## The connector's file\n"]
    for section in CONNECTOR_SECTIONS:
        parts.append(_section(section, 3))
    parts += ["\n### Prefixes\n\n", _families(CONNECTOR_FAMILIES)]
    parts.append("\n## The worker's file\n")
    for section in WORKER_SECTIONS:
        parts.append(_section(section, 3))
    parts += ["\n### Prefixes\n\n", _families(WORKER_FAMILIES)]
    parts.append("\n## Converters\n\nIf the connector's file names a converter, all its options come from there too.\n")
    parts += [_section(section, 3) for section in (JSON_OPTIONS, AVRO_OPTIONS, STRING_OPTIONS, PLAIN_OPTIONS)]
    parts += ["\n## Secrets from Vault and AWS\n", _STORES_TEXT]
    parts += ["\n## Transforms\n", _TRANSFORM_TEXT, "\n| type | also |\n|---|---|\n", _classes(TRANSFORMS)]
    parts += ["\n| predicate | also |\n|---|---|\n", _classes(PREDICATES)]
    parts += ["\n## Topic creation\n", _CREATION_TEXT]
    parts += ["\n## Kafka clients\n", _CLIENT_TEXT, _SECURITY_TEXT, "\n", _clients()]
    parts += ["\n## Names from elsewhere\n", _ELSEWHERE_TEXT, "\n", _neighbours()]
    parts += ["\n## What is not possible\n", _IMPOSSIBLE_TEXT, "\n", table(IMPOSSIBLE)]
    return "".join(parts)


def _neighbours() -> str:
    lines = ["| what | names | why they have no effect |\n|---|---|---|\n"]
    for one in NEIGHBOURS:
        names = [f"`{name}`" for name in sorted(one.names)] + [f"`{prefix}*`" for prefix in one.prefixes]
        lines.append(f"| {_cell(one.what)} | {', '.join(names)} | {_cell(one.reason)} |\n")
    return "".join(lines)


def _section(section: Section, level: int) -> str:
    lines = [f"\n{'#' * level} {section.title}\n\n{section.intro}\n"]
    working = [one for one in section.properties if one.effect is Effect.WORKS]
    idle = [one for one in section.properties if one.effect is not Effect.WORKS]
    if working:
        lines.append("\n| property | type | default | meaning |\n|---|---|---|---|\n")
        lines += [_row(one) for one in working]
    if idle:
        lines.append("\nAccepted without effect:\n\n| property | why |\n|---|---|\n")
        lines += [f"| {names} | {_cell(reason)} |\n" for reason, names in _grouped(idle)]
    return "".join(lines)


def _row(declared: Property) -> str:
    name = f"`{declared.name}`" + (" **ours**" if declared.ours else "")
    return f"| {name} | {_cell(declared.kind.label)} | {_cell(_default(declared))} | {_cell(declared.doc)} |\n"


def _default(declared: Property) -> str:
    if declared.required:
        return "*required*"
    if declared.default_text is not None:
        return declared.default_text
    if declared.default is None or declared.default in ("", (), frozenset()):
        return ""
    return f"`{str(declared.default).lower() if isinstance(declared.default, bool) else declared.default}`"


def _grouped(properties: Iterable[Property]) -> list[tuple[str, str]]:
    reasons: dict[str, list[str]] = {}
    for declared in properties:
        reasons.setdefault(declared.reason, []).append(f"`{declared.name}`")
    return [(reason, ", ".join(names)) for reason, names in reasons.items()]


def _families(families: tuple[Family, ...]) -> str:
    lines = ["| prefix | meaning |\n|---|---|\n"]
    for family in families:
        idle = f" *No effect:* {family.reason}." if family.effect is Effect.NONE else ""
        lines.append(f"| `{family.prefix}` | {_cell(family.doc + idle)} |\n")
    return "".join(lines)


def _classes(known: dict[str, str]) -> str:
    spellings: dict[str, list[str]] = {}
    for spelling, name in known.items():
        spellings.setdefault(name, []).extend([f"`{spelling}`"] if spelling != name else [])
    return "".join(f"| `{name}` | {', '.join(others)} |\n" for name, others in spellings.items())


def _clients() -> str:
    lines = ["| property | producer | consumer | admin |\n|---|---|---|---|\n"]
    idle: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for _, name in CLIENT_PROPERTIES):
        rules = [CLIENT_PROPERTIES.get((role, name)) for role in (PRODUCER, CONSUMER, ADMIN)]
        if all(rule is None or (rule.reason and not rule.demand and not rule.targets) for rule in rules):
            reason = next(rule.reason for rule in rules if rule)
            idle.setdefault(reason, []).append(f"`{name}`")
            continue
        cells = [_becomes(rule, role) for rule, role in zip(rules, (PRODUCER, CONSUMER, ADMIN), strict=True)]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |\n")
    lines.append("\nAccepted without effect:\n\n| property | why |\n|---|---|\n")
    idle["librdkafka refreshes logins automatically"] = [f"`{name}`" for name in SASL_WITHOUT_EFFECT]
    lines += [f"| {', '.join(names)} | {_cell(reason)} |\n" for reason, names in idle.items()]
    handled = ", ".join(f"`{name}`" for name in (*SSL_NAMES, *SASL_NAMES))
    native = ", ".join(f"`{name}`" for name in sorted(NATIVE_NAMES))
    lines.append(f"\nHandled as described above: {handled}.\n")
    lines.append(f"\nlibrdkafka's own names are accepted unchanged: {native}.\n")
    return "".join(lines)


def _becomes(declared: ClientProperty | None, role: str) -> str:
    if declared is None:
        return ""
    target = declared.target(role)
    if target:
        text = "same" if target == declared.name else f"`{target}`"
        return text + (" (checked)" if declared.demand else "")
    if declared.demand:
        where = ", unless `exactly.once.support=disabled`" if declared.freed else ""
        return f"fixed: contradicting values are errors{where}"
    return _cell(f"no effect: {declared.reason}") if declared.reason else "see above"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(page())
