"""Values that must never be shown.

``Secret`` wraps a password so that logs, reprs and error texts show asterisks; ``shown`` renders any configured
value for a message, hiding what the property's declaration, its name or a URL's user part says is secret.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MASK = "********"

#: Names that hold secrets even when nobody declared them: an unknown property is echoed in an error message, and it
#: may be a misspelt password.
_SECRET_NAME = re.compile(
    r"pas+w|passphrase|pwd|secret|token(?!\.endpoint)|credential(?!s\.source)|jaas|user\.info|private.?key|api.?key|keystore\.key$|key\.pem$",
    re.IGNORECASE,
)
_URL_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A secret text; ``reveal()`` is the one way to it."""

    _text: str

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
    return bool(_SECRET_NAME.search(name))


def shown(name: str, text: str | None, *, secret: bool = False) -> str | None:
    """``text`` as it may appear in a message about the property ``name``."""
    if text is None:
        return None
    if secret or is_secret_name(name):
        return MASK
    return _URL_USER.sub(MASK, text)
