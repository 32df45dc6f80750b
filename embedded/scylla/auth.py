"""Logging in: one user with a password, checked the way PasswordAuthenticator does (SASL PLAIN).

In: the token of an AUTH_RESPONSE. Out: the user's name, or `BadCredentials`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Final

from embedded.scylla.errors import BadCredentials, ProtocolError

AUTHENTICATOR: Final = "org.apache.cassandra.auth.PasswordAuthenticator"
ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The one user that may log in. The password is kept out of the representation."""

    user: str
    password: str = field(repr=False)

    def check(self, token: bytes | None) -> str:
        """The token is `[authorization id] NUL user NUL password`."""
        parts = (token or b"").split(b"\0")
        if len(parts) != 3:
            raise ProtocolError("Bad SASL PLAIN token: expected authorization id, user and password")
        _, user, password = parts
        same_user = hmac.compare_digest(user, self.user.encode())
        if not hmac.compare_digest(password, self.password.encode()) or not same_user:
            raise BadCredentials("Username and/or password are incorrect")
        return self.user
