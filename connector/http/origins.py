"""Whether a browser asks on behalf of somebody else's page.

In: the headers of a request, and where the server listens. Out: why it is refused, or None. A page of any site can
make a browser send requests to this machine; under a name that its owner lets resolve to our address it could read the
answers, too (DNS rebinding). Names that nobody else can own, and addresses, are safe.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from connector.http.access import is_loopback

LONGEST_SHOWN = 100

#: What browsers send, and programs do not.
_OF_BROWSERS = ("Origin", "Referer", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Cookie")


def foreign(headers: Mapping[str, str], own_host: str, *, with_token: bool) -> str | None:
    """Why a request is refused.

    Other names than our own are refused of everybody where only this machine is served, else of browsers alone: behind
    an open port they are services' names. ``with_token``: whoever knows the token is no foreign page.
    """
    host = _name(headers.get("Host", ""))
    known = host == "" or _is_ours(host, own_host)
    if not known and not with_token and (is_loopback(own_host) or _is_browser(headers)):
        return _refusal("host", host, "use an address, localhost or the value of --http-host")
    origin = headers.get("Origin")
    if origin is not None and not _is_at_home(origin, host, own_host):
        return _refusal("origin", origin, "pages of other sites may not ask")
    return None


def lent(headers: Mapping[str, str]) -> str | None:
    """Why a request that changes something is refused: a page asks for it that is served by another port, or site.

    All ports of this machine are at home here, and not all of them are ours: what one's pages may see is
    harmless (they do not see the answers), what they may do is not.
    """
    site = headers.get("Sec-Fetch-Site", "none")
    return None if site in ("none", "same-origin") else _refusal("site", site, "only the service's own page may")


def _refusal(what: str, given: str, remedy: str) -> str:
    shown = given if len(given) <= LONGEST_SHOWN else given[:LONGEST_SHOWN] + "…"
    return f"requests of {what} {shown} are refused: {remedy}"


def _is_at_home(origin: str, host: str, own_host: str) -> bool:
    try:
        name = (urlsplit(origin).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    return name != "" and (name == host or _is_local(name) or name == own_host.lower())


def _is_ours(name: str, own_host: str) -> bool:
    return _is_address(name) or _is_local(name) or name in (own_host.lower(), socket.gethostname().lower())


def _is_local(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_browser(headers: Mapping[str, str]) -> bool:
    return any(name in headers for name in _OF_BROWSERS) or headers.get("User-Agent", "").startswith("Mozilla/")


def _name(host: str) -> str:
    """The name of a ``Host`` header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".")
