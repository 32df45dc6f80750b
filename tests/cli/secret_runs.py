"""The runs of the matrix of secrets: a canary in every place a secret can be, correct, wrong or misspelt.

In: nothing. Out: one `Run` for each place: what is added to the files and the
environment, and what the answer must name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CANARY = "k4n4ry-Zx9"
#: With everything that needs quoting somewhere.
ODD = "k4n4ry/Zx9?#%&=ä\"' "
FORMS = ("k4n4ry", "K4N4RY", "azRuNHJ5")  # as it is, in capitals, in Base64
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'
AVRO = {"value.converter": "AvroConverter"}
URL = "value.converter.schema.registry.url"


@dataclass(frozen=True)
class Run:
    """``named``: what stdout or stderr must say, so that the run is known to have come to the place."""

    name: str
    named: str
    connector: dict[str, Any] = field(default_factory=dict)
    worker: dict[str, Any] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)


def _unknown(name: str) -> Run:
    return Run(f"unknown {name}", name, {name: CANARY})


def _unknown_of_worker(name: str) -> Run:
    return Run(f"unknown {name} of the worker", name, {}, {name: CANARY})


def _from_environment(name: str, place: str = "connector", named: str = "", **more: Any) -> Run:
    given = {name: "${env:CANARY}"}
    files: dict[str, Any] = {place: {**more.get(place, {}), **given}}
    return Run(f"{name} from the environment", named or name, environ={"CANARY": CANARY}, **files)


def _registry(name: str, url: str) -> Run:
    return Run(f"registry {name}", URL, {**AVRO, URL: url})


def _nested(name: str, value: Any) -> Run:
    return Run(f"nested {name}", name, {name: value})


#: Runs of `validate --offline`, all of which end with problems.
OFFLINE = (
    *map(
        _unknown,
        (
            *("scylla.pw", "scylla.pasword", "scylla.pwd", "scylla.kennwort", "scylla.auth.key", "scylla.auth.tokn"),
            *("scylla.userinfo", "my.own", "a.b.c", "sasl.jaas", "producer.override.ssl.keystore.pasword"),
            *("producer.override.sasl.jaas.confg", "transforms.x.pw", "consumer.override.sasl.passwort"),
            *("scylla.ssl.keystore.pass", "scylla.ssl.truststor.password", "errors.deadletterqueue.pw"),
        ),
    ),
    *map(
        _unknown_of_worker,
        (
            *("sasl.pw", "ssl.key.pasword", "sasl.jaas.confg", "bearer.auth.tokn", "basic.auth.userinfo", "my.own"),
            *("producer.sasl.jaas.cfg", "admin.ssl.truststore.passwort", "listeners.htps.ssl.key"),
        ),
    ),
    Run("unknown option bearer", "tokn", {**AVRO, URL: "http://h:1", "value.converter.bearer.auth.tokn": CANARY}),
    Run("unknown option login", "userinfo", {**AVRO, URL: "http://h:1", "value.converter.basic.auth.userinfo": CANARY}),
    Run("login without a colon", "colon", {**AVRO, URL: "http://h:1", "value.converter.basic.auth.user.info": CANARY}),
    Run("token of two lines", "token", {**AVRO, "value.converter.bearer.auth.token": f"{CANARY}\n1"}),
    _registry("without scheme", f"u:{CANARY}@h:8081"),
    _registry("with a slash in its password", f"http://u:{CANARY}/{CANARY}@h:8081"),
    _registry("with odd characters", f"http://u:{ODD.strip()}@h:8081"),
    _registry("with a token in its query", f"ftp://h:8081/?token={CANARY}"),
    _registry("with a token as user", f"ftp://{CANARY}@h:8081"),
    _registry("of a wrong port", f"http://u:{CANARY}@h:8o81"),
    _registry("of several", f"http://h:1,ftp://u:{CANARY}@h:8081"),
    _nested("scylla.password", {"value": CANARY}),
    _nested("scylla", {"user": "u", "pw": CANARY}),
    _nested("my.list", [{"a": [CANARY]}]),
    _nested("name", {"a": CANARY}),
    Run("outside of config", "auth", {"": {"auth": {"x": CANARY}}}),
    Run("a key outside of config", "scylla.key", {"": {"scylla.key": CANARY}}),
    Run("no object as config", "config", {"": {"config": [CANARY]}}),
    _from_environment("tasks.max"),
    _from_environment("scylla.table.names"),
    _from_environment("scylla.consistency.level"),
    _from_environment("scylla.cluster.ip.addresses", connector={"tasks.max": "x"}, named="tasks.max"),
    Run("wrong contact point", "ip.addresses", {"scylla.cluster.ip.addresses": "${env:C}"}, {}, {"C": f"a b,{CANARY}"}),
    _from_environment("value.converter"),
    _from_environment("scylla.ssl.truststore.path", connector={"scylla.ssl.enabled": "true"}),
    _from_environment("sasl.mechanism", "worker", worker={"security.protocol": "SASL_SSL"}),
    _from_environment("security.protocol", "worker"),
    _from_environment("compression.type", "worker"),
    _from_environment("my.own"),
    _from_environment("scylla.user", named="scylla.password"),
    Run("password without user", "scylla.user", {"scylla.password": CANARY}),
    Run("module of another mechanism", "jaas", {}, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{CANARY} required a=b;",
    }),
    Run("no login configuration", "jaas", {}, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'Plain required password="{CANARY}',
    }),
    Run("unsecured token", "jaas", {}, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'a.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{CANARY}";',
    }),
    Run("address of tokens", "url", {}, {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'a.OAuthBearerLoginModule required clientId="a" clientSecret="{CANARY}";',
        "sasl.oauthbearer.token.endpoint.url": f"ftp://u:{CANARY}@h/",
    }),
    Run("key store's password", "keystore", {
        "scylla.ssl.enabled": "true", "scylla.ssl.keystore.path": "{stores}/client.p12",
        "scylla.ssl.keystore.password": CANARY,
    }),
    Run("trust store's password", "truststore", {
        "scylla.ssl.enabled": "true", "scylla.ssl.truststore.path": "{stores}/trust.jks",
        "scylla.ssl.truststore.password": CANARY,
    }),
    Run("key store of a client", "keystore", {}, {
        "security.protocol": "SSL", "ssl.keystore.location": "{stores}/client.p12", "ssl.keystore.password": CANARY,
    }),
    Run("key as text", "chain", {}, {
        "security.protocol": "SSL", "ssl.keystore.key": f"-----BEGIN-----\n{CANARY}\n-----",
    }),
    Run("worker's variable", "tasks.max", environ={"CONNECT_SCYLLA_PASSWORD": CANARY, "CONNECT_GROUP_IDD": CANARY},
        connector={"tasks.max": "x"}),
    Run("file of secrets", "tasks.max", {"tasks.max": "${file:{folder}/s.properties:k}"}),
    Run("directory of secrets", "tasks.max", {"tasks.max": "${directory:{folder}:k}"}),
    Run("unknown provider", "vault", {"scylla.user": "${vault:a:b}", "scylla.password": CANARY}),
)  # fmt: skip

#: What is added to a landing file; `land` refuses all of them.
LANDING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("scylla.pw", {"scylla.pw": CANARY}),
    ("kafak", {"kafak.sasl.jaas.config": JAAS.format(CANARY)}),
    ("spork", {"spork.hadoop.fs.s3a.secret.key": CANARY}),
    ("nested", {"nested": {"a": {"password": CANARY}}}),
    ("connector's file", {"config": {"scylla.password": CANARY, "other": {"x": CANARY}}}),
    ("merge.every.rows", {"merge.every.rows": "${env:CANARY}"}),
    ("schema.registry.url", {"schema.registry.url": f"u:{CANARY}@h"}),
    ("schema.registry.url", {"schema.registry.url": f"http://u:{CANARY}/x@h"}),
    ("column.types", {"column.types": {"ks.t.c": {"pw": CANARY}}}),
    ("scylla.user", {"scylla.cluster.ip.addresses": "h", "scylla.password": CANARY}),
)
