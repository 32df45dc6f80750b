"""Worker properties in environment variables, as Connect's images map them; files of such variables, too. A login.

In: variables, or the text of a file of ``NAME=value`` lines. Out: properties as text, with the variable of each;
the login of ScyllaDB that commands take from ``SCYLLA_USER`` and ``SCYLLA_PASSWORD``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connector.errors import ConfigurationError, Problem
from connector.secrets import register

#: What is said of bytes that are no UTF-8, which Python hands on as halves of characters.
NO_TEXT = "Is no text: it has bytes that are not UTF-8, or half of a character"
PREFIX = "CONNECT_"
_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_QUOTED = re.compile(r"\"(.*)\"|'(.*)'", re.DOTALL)


def environment_properties(environ: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Property → (variable, text). ``__`` stands for ``_``, ``___`` for ``-``, a single ``_`` for a dot."""
    found = {}
    for variable, text in sorted(environ.items()):
        if variable.startswith(PREFIX) and len(variable) > len(PREFIX):
            rest = variable[len(PREFIX) :].lower()
            name = rest.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
            found[name] = (variable, text)
    return found


def variables_of(text: str) -> dict[str, str] | None:
    """The variables of an ``env`` file that is a worker's; None if the text is anything else."""
    variables: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            return None
        quoted = _QUOTED.fullmatch(match.group(2))
        variables[match.group(1)] = (quoted.group(1) or quoted.group(2) or "") if quoted else match.group(2)
    return variables if any(name.startswith(PREFIX) for name in variables) else None


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
