"""What a container engine runs every few seconds: asks the HTTP port of this machine whether the connector is healthy.

In: the port, or none: then the one that the container's first process was told to serve. Out: the answer on stdout, for
`docker inspect`, and 0 or 1. It imports no more than that takes.
"""

from __future__ import annotations

import http.client
import re
import ssl
import sys
from pathlib import Path

_SECONDS = 4
_CLOSED = 401
#: What listens at all addresses is asked at this machine's own.
_LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1"}


def main() -> None:
    address = ("127.0.0.1", int(sys.argv[1])) if len(sys.argv) > 1 else served(Path("/proc/1/cmdline").read_bytes())
    if address is None:
        # An engine ends what it holds for ill, again and again.
        print("nobody can be asked: the container was started without --http-port")
        return
    try:
        status, text = _answer(*address, "/health")
        if status == _CLOSED:
            # With a token `/health` tells nothing to whoever has none; this one is open, and says yes or no.
            status, text = _answer(*address, "/ready")
    except (OSError, http.client.HTTPException) as error:
        status, text = 0, f"no answer at port {address[1]}: {error}"
    print(text)
    sys.exit(status != http.HTTPStatus.OK)


def served(command: bytes) -> tuple[str, int] | None:
    """Where the process of that command line listens; NULs, or a shell's blanks, stand between its words."""
    line = command.decode(errors="replace")
    port, host = (re.findall(rf"--{option}[=\0 ]+([^\0 ]+)", line) for option in ("http-port", "http-host"))
    if not port or not port[-1].isdecimal():
        return None
    return _LOCAL.get(host[-1], host[-1]) if host else "127.0.0.1", int(port[-1])


def _answer(host: str, port: int, path: str) -> tuple[int, str]:
    try:
        return _asked(http.client.HTTPConnection(host, port, timeout=_SECONDS), path)
    except (ConnectionResetError, http.client.BadStatusLine):
        # It speaks TLS only. Whose certificate that is does not matter to a machine that asks itself.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return _asked(http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=context), path)


def _asked(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


if __name__ == "__main__":
    main()
