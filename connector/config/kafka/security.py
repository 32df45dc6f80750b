"""TLS stores and SASL logins of Java's Kafka clients, as librdkafka takes them.

In: the ``ssl.*`` and ``sasl.*`` properties of one client. Out: librdkafka properties with certificates and keys as
PEM in memory, and problems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connector.config.kafka.oauth import OAUTH_HANDLERS, OAUTH_NAMES, Report, translate_oauth
from connector.config.secret import login_text
from connector.config.tls import KeystoreError, openssl_cipher_name, read_certificates, read_identity
from connector.suggestions import did_you_mean

SSL_NAMES = (
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.cipher.suites",
)
SASL_NAMES = (
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.jaas.config",
    "sasl.kerberos.service.name",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    *OAUTH_NAMES,
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
    "sasl.login.class",
)
#: Known, and decided inside librdkafka.
SASL_WITHOUT_EFFECT = (
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.jwt.validator.class",
)
SECRET_NAMES = frozenset(
    (
        "ssl.truststore.password",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "sasl.jaas.config",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.password",
        "ssl.key.pem",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    )
)
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_MODULES = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": ("OAUTHBEARER",),
    "Krb5LoginModule": ("GSSAPI",),
}
_JAAS = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\s*(.*?)\s*;\s*", re.DOTALL | re.IGNORECASE)
_JAAS_OPTION = re.compile(r"""\s*([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""", re.DOTALL)


class JaasError(ValueError):
    """The text is no login configuration; the message never quotes it."""


def parse_jaas(text: str) -> tuple[str, dict[str, str]]:
    """The simple name of the login module and its options."""
    match = _JAAS.fullmatch(login_text(text))
    if not match:
        raise JaasError('Must be of the form <module class> required <option>="<value>" …;')
    options = {}
    rest = match.group(3)
    while rest.strip():
        option = _JAAS_OPTION.match(rest)
        if not option:
            raise JaasError('Has an option that is not of the form <name>="<value>"')
        quoted = next(group for group in option.groups()[1:] if group is not None)
        options[option.group(1)] = re.sub(r"\\(.)", r"\1", quoted) if option.group(4) is None else quoted
        rest = rest[option.end() :]
    return match.group(1).rsplit(".", 1)[-1], options


def translate_sasl(given: Mapping[str, str], protocol: str, report: Report) -> dict[str, str]:
    """librdkafka's login properties; nothing when the protocol has no login."""
    if not protocol.startswith("sasl"):
        return {}
    mechanism = (given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "GSSAPI").strip().upper()
    if mechanism not in _MECHANISMS:
        hint = did_you_mean(mechanism, _MECHANISMS) or "one of " + ", ".join(_MECHANISMS)
        report("sasl.mechanism", f"The mechanism {mechanism} is not supported", hint)
        return {}
    _check_handlers(given, mechanism, report)
    found = {"sasl.mechanism": mechanism}
    for name in ("sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin"):
        if name in given:
            found[name] = given[name].strip()
    options: dict[str, str] = {}
    text = given.get("sasl.jaas.config", "").strip()
    if text:
        try:
            module, options = parse_jaas(text)
        except JaasError as error:
            report("sasl.jaas.config", str(error), None)
            return found
        if mechanism not in _MODULES.get(module, ()):
            right = next(name for name, mechanisms in _MODULES.items() if mechanism in mechanisms)
            # Anything may stand there by mistake, a password too: only a name that is known is repeated.
            named = f"module {module}" if module in _MODULES else "login module"
            report("sasl.jaas.config", f"The {named} does not serve sasl.mechanism={mechanism}", right)
            return found
    if mechanism == "OAUTHBEARER":
        found |= translate_oauth(given, options, report)
    elif mechanism == "GSSAPI":
        _kerberos(options, found, report)
    else:
        _password(given, options, found, report)
    return found


def _password(given: Mapping[str, str], options: Mapping[str, str], found: dict[str, str], report: Report) -> None:
    for option, name in (("username", "sasl.username"), ("password", "sasl.password")):
        value = options.get(option, given.get(name))
        if value is None:
            report("sasl.jaas.config", f"Has no {option}", '… required username="…" password="…";')
        else:
            found[name] = value


def _kerberos(options: Mapping[str, str], found: dict[str, str], report: Report) -> None:
    for option, name in (("principal", "sasl.kerberos.principal"), ("keyTab", "sasl.kerberos.keytab")):
        if option in options:
            found[name] = options[option]
    if "serviceName" in options:
        found.setdefault("sasl.kerberos.service.name", options["serviceName"])
    if not _has_gssapi():
        report(
            "sasl.mechanism",
            "GSSAPI (Kerberos) needs a librdkafka with libsasl2, which the installed confluent-kafka lacks",
            "build confluent-kafka from source, or use SCRAM or OAUTHBEARER",
        )


def _has_gssapi() -> bool:
    """Asks librdkafka itself; no connection is made."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({"builtin.features": "sasl_gssapi", "log_level": 0})
    except KafkaException:
        return False
    return True


def _check_handlers(given: Mapping[str, str], mechanism: str, report: Report) -> None:
    for name in ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class", "sasl.login.class"):
        handler = given.get(name, "").strip()
        usual = handler.rsplit(".", 1)[-1] in OAUTH_HANDLERS and mechanism == "OAUTHBEARER"
        if handler and not usual:
            report(
                name, "Classes of the JVM cannot be loaded here", "leave it out, and give the login in sasl.jaas.config"
            )


def translate_ssl(given: Mapping[str, str], protocol: str, report: Report) -> dict[str, str]:
    """librdkafka's TLS properties, stores as PEM in memory; nothing when the protocol has no TLS."""
    if not protocol.endswith("ssl"):
        return {}
    found: dict[str, str] = {}
    if "ssl.truststore.certificates" in given:
        found["ssl.ca.pem"] = given["ssl.truststore.certificates"]
    elif given.get("ssl.truststore.location", "").strip():
        path = given["ssl.truststore.location"].strip()
        try:
            found["ssl.ca.pem"] = read_certificates(path, given.get("ssl.truststore.password") or None)
        except KeystoreError as error:
            report(f"ssl.truststore.{error.about}", str(error), error.remedy)
    if "ssl.keystore.key" in given or "ssl.keystore.certificate.chain" in given:
        for name, target in (
            ("ssl.keystore.key", "ssl.key.pem"),
            ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        ):
            if name in given:
                found[target] = given[name]
            else:
                report(name, "Key and certificate chain go together", None)
        if "ssl.key.password" in given:
            found["ssl.key.password"] = given["ssl.key.password"]
    elif given.get("ssl.keystore.location", "").strip():
        path = given["ssl.keystore.location"].strip()
        try:
            identity = read_identity(
                path, given.get("ssl.keystore.password") or None, given.get("ssl.key.password") or None
            )
            found["ssl.certificate.pem"], found["ssl.key.pem"] = identity.certificates, identity.key
        except KeystoreError as error:
            report(f"ssl.keystore.{error.about}", str(error), error.remedy)
    elif "ssl.key.password" in given and "ssl.key.location" in given:
        found["ssl.key.password"] = given["ssl.key.password"]
    suites = [item.strip() for item in given.get("ssl.cipher.suites", "").split(",") if item.strip()]
    # The suites of TLS 1.3 are all on by default and librdkafka's list is for the older versions only.
    older = [openssl_cipher_name(suite) for suite in suites if not re.match(r"TLS_(AES|CHACHA20)_", suite)]
    if older:
        found["ssl.cipher.suites"] = ":".join(older)
    return found
