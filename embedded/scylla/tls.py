"""TLS for the listening sockets.

In: paths of PEM files. Out: an `ssl.SSLContext`; with a client CA, only clients that show a certificate of it get in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connector.errors import EmbeddedError

if TYPE_CHECKING:
    import ssl


def server_context(certificate: str, key: str | None, client_ca: str | None = None) -> ssl.SSLContext:
    """`key` may be left out where the certificate's file holds it too."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise EmbeddedError(f"cannot use the certificate {certificate} (key {key or certificate}): {error}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as error:
            raise EmbeddedError(f"cannot use the client CA {client_ca}: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context
