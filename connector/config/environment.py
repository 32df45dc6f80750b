"""Worker properties in environment variables, as Connect's images map them; files of such variables, too. A login.

In: variables, or the text of a file of ``NAME=value`` lines. Out: properties as text, with the variable of each, and
what is to be said of those without ``CONNECT_``; the login of ScyllaDB that commands take from ``SCYLLA_USER`` and
``SCYLLA_PASSWORD``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connector.config.env_files import Line, env_lines
from connector.config.java_properties import java_properties
from connector.config.properties import WORKER_BY_NAME, Effect, idle_reason
from connector.config.redpanda import ADDITIONAL, OF_THE_IMAGE, is_of_redpanda, redpanda_properties
from connector.config.substitution import Variables, substituted
from connector.errors import ConfigurationError, Problem
from connector.secrets import register

#: What is said of bytes that are no UTF-8, which Python hands on as halves of characters.
NO_TEXT = "Is no text: it has bytes that are not UTF-8, or half of a character"
PREFIX = "CONNECT_"
#: The variables that `debezium/connect` takes without the prefix, from `connect-base/2.7/docker-entrypoint.sh`; it
#: exports each as a ``CONNECT_…``, over one that is there.
_OF_THE_CLUSTER = {
    "BOOTSTRAP_SERVERS": "bootstrap.servers",
    "GROUP_ID": "group.id",
    "CONFIG_STORAGE_TOPIC": "config.storage.topic",
    "OFFSET_STORAGE_TOPIC": "offset.storage.topic",
    "STATUS_STORAGE_TOPIC": "status.storage.topic",
    "KEY_CONVERTER": "key.converter",
    "VALUE_CONVERTER": "value.converter",
}
_OF_DEBEZIUM = {
    **_OF_THE_CLUSTER,
    "OFFSET_FLUSH_INTERVAL_MS": "offset.flush.interval.ms",
    "OFFSET_FLUSH_TIMEOUT_MS": "offset.flush.timeout.ms",
    "SHUTDOWN_TIMEOUT": "task.shutdown.graceful.timeout.ms",
    "REST_PORT": "rest.port",
    "REST_HOST_NAME": "rest.host.name",
    "ADVERTISED_PORT": "rest.advertised.port",
    "ADVERTISED_HOST_NAME": "rest.advertised.host.name",
}
_FAMILIES = (
    *("key.converter.", "value.converter.", "header.converter."),
    *("offset.storage.", "status.storage.", "config.storage."),
)
#: Redpanda's image takes a whole worker's file in this one.
_BLOCK = "CONNECT_CONFIGURATION"
_BRACED = r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-?+][^${}]*)?\}"
#: By the quotes around them: what is looked up in a value.
_LOOKED_UP = {"": re.compile(_BRACED), '"': re.compile(rf"\$\$|{_BRACED}")}
_IMAGE = re.compile(r"(?:.*/)?debezium/connect(?:-base)?(?:[:@].*)?")
#: What tells a worker's properties from all others.
OF_A_WORKER = frozenset(
    ("bootstrap.servers", "group.id", "offset.storage.topic", "offset.storage.file.filename", "config.storage.topic")
)


def environment_properties(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Property → (variable, text). ``__`` stands for ``_``, ``___`` for ``-``, a single ``_`` for a dot."""
    of_redpanda = is_of_redpanda(environ)
    found = redpanda_properties(environ) if of_redpanda else {}
    skipped = OF_THE_IMAGE if of_redpanda else ()
    for variable, text in sorted(environ.items()):
        if variable.startswith(PREFIX) and len(variable) > len(PREFIX) and variable not in (_BLOCK, *skipped):
            found[_property(variable[len(PREFIX) :])] = (variable, text)
    if _BLOCK in environ:
        try:
            # It stands at the end of the file that the image makes of all this, where the last one counts.
            block = {name: (_BLOCK, text) for name, text in java_properties(environ[_BLOCK]).items()}
            found |= {name: each for name, each in block.items() if found.get(name, ("",))[0] != ADDITIONAL}
        except ValueError:
            found[_property(_BLOCK)] = (_BLOCK, environ[_BLOCK])
    return found


def _property(rest: str) -> str:
    dotted = rest.lower().replace("___", "\0").replace("__", "\1").replace("_", ".")
    return dotted.replace("\0", "-").replace("\1", "_")


def worker_properties(variables: Mapping[str, str], image: str = "") -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The properties of a worker whose variables stand in a file, and what is to be said: (property or variable, text).

    Those without ``CONNECT_`` are taken where the ``image`` is Debezium's, or where there are so many that it must be.
    """
    found = {name: text for name, (_, text) in environment_properties(variables).items()}
    notes: list[tuple[str, str]] = []
    known = is_debezium_image(image)
    taken = known or is_of_debezium(variables)
    for variable, text in variables.items():
        name = _OF_DEBEZIUM.get(variable)
        if taken and name is not None and text.strip() and (known or name not in found):
            found[name] = text
            if not known:
                said = f"taken from a variable without {PREFIX}, as Debezium's image (debezium/connect) takes it"
                notes.append((name, said))
        elif not variable.startswith(PREFIX) and _is_of_a_worker(variable) and text != found.get(_property(variable)):
            notes.append((variable, f"has no effect without its prefix: {PREFIX}{variable} is the worker's"))
    return found, notes


def is_debezium_image(image: str) -> bool:
    return _IMAGE.fullmatch(image.strip()) is not None


def is_of_debezium(variables: Mapping[str, str]) -> bool:
    """Whether there are so many of those that Debezium's image takes without the prefix that they are no chance."""
    return len(without_prefix(variables)) > 1


def without_prefix(variables: Mapping[str, str]) -> dict[str, str]:
    """Variable → property, of what a worker of Debezium's image cannot do without."""
    return {variable: name for variable, name in _OF_THE_CLUSTER.items() if variables.get(variable, "").strip()}


def _is_of_a_worker(variable: str) -> bool:
    """Whether it would be missed; names as `HTTP_PORT` and `ADMIN_PASSWORD` are of other programs more often."""
    name = _property(variable)
    declared = WORKER_BY_NAME.get(name)
    works = declared is not None and declared.effect is Effect.WORKS and not declared.ours
    return ("." in name and works) or name.startswith(_FAMILIES)


def is_idle(name: str) -> bool:
    """Whether it makes no difference what a worker's property says."""
    return idle_reason(name, worker=True) is not None


def variables_of(text: str, environ: Mapping[str, str], *, any_names: bool = False) -> dict[str, str] | None:
    """The variables of an ``env`` file that is a worker's; None if the text is anything else. ``any_names``: it is
    known to be such a file, and other programs may have theirs in it.

    Of what may stand for a variable only ``${NAME}`` is one: `docker run --env-file` takes ``$`` as it is.
    """
    lines, variables = env_lines(text, any_names=any_names), dict[str, str]()
    if lines is None:
        return None
    for line in lines:
        if line.value is not None:
            known = Variables(environ, dict(variables))
            variables[line.name] = line.value if line.quote == "'" else _with_variables(line, known)
    of_a_worker = any(name.startswith(PREFIX) for name in variables) or is_of_debezium(variables)
    return variables if of_a_worker else None


def _with_variables(line: Line, known: Variables) -> str:
    return _LOOKED_UP[line.quote].sub(lambda found: substituted(found.group(), known), line.value or "")


def environment_login(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """User and password; None where the environment has no password."""
    if "SCYLLA_PASSWORD" not in environ:
        return None
    login = environ.get("SCYLLA_USER", "cassandra"), environ["SCYLLA_PASSWORD"]
    register(login[1], "${env:SCYLLA_PASSWORD}")
    wrong = [name for name, text in zip(("SCYLLA_USER", "SCYLLA_PASSWORD"), login, strict=True) if not is_text(text)]
    if wrong:
        raise ConfigurationError([Problem(name, NO_TEXT, file="environment") for name in wrong])
    return login


def is_text(text: str) -> bool:
    """Whether it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
