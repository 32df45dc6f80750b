"""Values that must never be shown, and how they are recognised in what a user wrote.

``Secret`` wraps a password so that logs, reprs and error texts show asterisks; ``shown`` renders any configured
value for a message; ``learn`` tells the filter of ``connector.secrets`` all that is secret in a value: what the
property's name says, logins and tokens in URLs, the options of a login module.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from connector.secrets import MASK, register

#: Names that hold secrets even when nobody declared them: an unknown property may be a misspelt password.
_SECRET_NAME = re.compile(
    r"pas+w|pass?$|passphrase|(^|[._-])pwd?($|[._-])|pwd|secret|tok(?:e?n)(?!\.endpoint)|credential(?!s\.source)"
    r"|jaas|user[._-]?info|sasl\.password"
    r"|(private|api|access|auth|account|sas|shared|signing|encryption|master)[._-]?key|keystore\.key$|key\.pem$",
    re.IGNORECASE,
)
# What a user calls a provider of secrets says nothing about its parameters.
_PROVIDER = re.compile(r"config\.providers\.[^.]+\.")
# Up to the last @ before a blank or a comma: a password may hold a slash that should have been quoted.
_URL_USER = re.compile(r"(?<=://)[^@\s,]*(?:@[^@\s,/]*)*(?=@)")
_BARE_USER = re.compile(r"(?<![^\s,;=\"'])[^\s,;:/@\"']+:(?!//)[^\s,;\"']+(?=@)")
_URL_QUERY = re.compile(r"(?<=[?&;#])([^=&;#\s,]+)=([^&;#\s,]+)")
# Names from their beginnings only: from each of its letters, a long word would take minutes.
_JAAS_VALUE = re.compile(r"""(?<![\w.\-])([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|'((?:[^'\\]|\\.)*)'?|([^\s"';]+))""")
# As in -Djavax.net.ssl.trustStorePassword=… among the options of a JVM, or in the address of a database.
_OPTION = re.compile(r"""(?<![\w.\-])([\w.\-]+)=(?:"([^"]*)"|'([^']*)'|([^\s;&,"']+))""")
_PUBLIC_OPTION = re.compile(
    r"^(user(name)?|client\.?id|principal|service\.?name|scope|key\.?tab|.*location|.*uri)$", re.I
)
_PLAIN = re.compile(r"(?i)true|false|none|null|-?[0-9.]+")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret text; ``reveal()`` is the one way to it."""

    _text: str

    def __post_init__(self) -> None:
        register(self._text)

    def __reduce__(self) -> tuple[Callable[..., Secret], tuple[str]]:
        # Made anew where it is unpickled, so that the filter of that process knows it too.
        return Secret, (self._text,)

    def reveal(self) -> str:
        return self._text

    def digest(self) -> str:
        """Tells two secrets apart in memory; not for publication (a short secret could be guessed from it)."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)


def is_secret_name(name: str) -> bool:
    """Whether a property of this name is masked although it is not declared as a secret."""
    return bool(_SECRET_NAME.search(_PROVIDER.sub("", name)))


def shown(name: str, text: str | None, *, secret: bool = False) -> str | None:
    """``text`` as it may appear in a message about the property ``name``."""
    if text is None:
        return None
    if secret or is_secret_name(name):
        return MASK
    text = _BARE_USER.sub(MASK, _URL_USER.sub(MASK, text))
    return _URL_QUERY.sub(rf"\1={MASK}", text) if "://" in text else text


def learn(name: str, value: Any, *, secret: bool = False) -> None:
    """Tells the filter what is secret in a value that was written for the property ``name``."""
    if isinstance(value, dict | list | tuple):
        for inner, member in value.items() if isinstance(value, dict) else ((name, member) for member in value):
            learn(str(inner), member, secret=secret or is_secret_name(name))
        return
    if not isinstance(value, str):
        if secret or is_secret_name(name):
            register(str(value))
        return
    for found in _secrets_in(name, value, secret or is_secret_name(name)):
        register(found)


def learn_resolved(name: str, text: str, reference: str) -> None:
    """A value that a reference stood for: as a whole, and each address, login or option of it that may be printed."""
    register(text, reference)
    if not is_secret_name(name) or ":" in text:
        for part in _parts(name, text):
            if not _PLAIN.fullmatch(part):
                register(part, reference)


def _secrets_in(name: str, text: str, secret: bool) -> Iterator[str]:
    if secret and not _PLAIN.fullmatch(text.strip()):
        yield text
        if re.search(r"user[._-]?info", name, re.IGNORECASE):
            yield text.partition(":")[2]
    elif secret and re.fullmatch(r"\s*[0-9]+\s*", text):
        yield text
    for login in (*_URL_USER.findall(text), *_BARE_USER.findall(text)):
        yield login
        yield login.partition(":")[2]
        # Whatever is cut at a slash by those who take it for a path.
        yield from login.partition(":")[2].split("/")
    if "://" in text:
        for option, value in _URL_QUERY.findall(text):
            if is_secret_name(option) or re.search(r"key|sig|auth|code", option, re.IGNORECASE) or len(value) > 15:
                yield value
    for option, *values in _OPTION.findall(text):
        if is_secret_name(option):
            yield from values
    if _is_login_module(name, text):
        yield from _login_options(text)
    if text.lstrip().startswith(("{", "[")):
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return
        learn(name, inner, secret=secret)


def _is_login_module(name: str, text: str) -> bool:
    return "jaas" in name.lower() or "LoginModule" in text


def login_text(text: str) -> str:
    """A login configuration all of whose quotes stand behind backslashes, without these: a variable of Connect's images
    becomes a line of a ``.properties`` file, where Java reads ``\\"`` as a quote."""
    return re.sub(r"\\(.)", r"\1", text) if '\\"' in text and not re.search(r'(?<!\\)"', text) else text


def _login_options(text: str) -> Iterator[str]:
    text = login_text(text)
    for option, *values in _JAAS_VALUE.findall(text):
        value = next((each for each in values if each), "")
        if not _PUBLIC_OPTION.match(option) and not _PLAIN.fullmatch(value):
            yield value
            yield re.sub(r"\\(.)", r"\1", value)
    # Of what is no login configuration at all, each word may be the password.
    if "=" not in text:
        yield from (word for word in re.split(r"[\s;]+", text) if word.lower() not in ("required", "optional"))


def _parts(name: str, text: str) -> Iterator[str]:
    if _is_login_module(name, text):
        yield from (value for _, *values in _JAAS_VALUE.findall(login_text(text)) for value in values)
        return
    if is_secret_name(name):
        if re.search(r"user[._-]?info", name, re.IGNORECASE):
            yield from text.strip().split(":", 1)
        return
    for item in (each.strip() for each in text.split(",")):
        bare = re.sub(r"^[A-Za-z_0-9+.-]+://", "", item)
        login, _, place = bare.rpartition("@")
        yield from (item.rstrip("/"), bare, login, *login.split(":", 1))
        if bare != item or login or re.search(r":[0-9]+$", place):
            address = re.split("[/?#]", place)[0]
            yield from (address, re.sub(r":[0-9]*$", "", address).strip("[]"))
