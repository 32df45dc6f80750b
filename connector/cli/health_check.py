"""What a container engine runs every few seconds: asks the HTTP port of this machine whether the connector is healthy.

In: the port. Out: the answer on stdout, for `docker inspect`, and 0 or 1. It imports no more than that takes.
"""

from __future__ import annotations

import http.client
import ssl
import sys

_SECONDS = 4
_CLOSED = 401


def main() -> None:
    port = int(sys.argv[1])
    try:
        status, text = _answer(port, "/health")
        if status == _CLOSED:
            # With a token `/health` tells nothing to whoever has none; this one is open, and says yes or no.
            status, text = _answer(port, "/ready")
    except (OSError, http.client.HTTPException) as error:
        status, text = 0, f"no answer at port {port}: {error}"
    print(text)
    sys.exit(status != http.HTTPStatus.OK)


def _answer(port: int, path: str) -> tuple[int, str]:
    try:
        return _asked(http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS), path)
    except (ConnectionResetError, http.client.BadStatusLine):
        # It speaks TLS only. Whose certificate that is does not matter to a machine that asks itself.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return _asked(http.client.HTTPSConnection("127.0.0.1", port, timeout=_SECONDS, context=context), path)


def _asked(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


if __name__ == "__main__":
    main()
