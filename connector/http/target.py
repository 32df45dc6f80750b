"""What a request line asks for: the path in its parts, and the query.

In: the target as it was sent. Out: path and query; ``Refused`` with 400, as Kafka Connect's server does it, where
programs could take the path for different things.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from connector.http.exchange import Refused

MOST_FIELDS = 100
#: Nobody knows where the next request of such a client begins.
CLOSING = {"Connection": "close"}
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})|%00")
# What a URI has only as an escape.
_ILLEGAL = re.compile(r"""[^!-~]|["<>\[\]^`{|}\\]""")
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


def target_of(text: str, host: str) -> tuple[str, dict[str, list[str]]]:
    """Proxies write the host before the path: it must be that of ``Host``. A fragment is the client's own."""
    try:
        path, _, query = text.partition("#")[0].partition("?")
        if path[:8].lower().startswith(("http://", "https://")):
            absolute = urlsplit(path)
            if absolute.netloc != host:
                raise Refused(400, "Authority!=Host", CLOSING)
            path = absolute.path or "/"
        if not path.startswith("/"):
            raise Refused(400, "Bad URI path" if path in ("", "*") else None, CLOSING)
        return _plain(path), parse_qs(query, keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(400, headers=CLOSING) from None


def refuse_hidden_slash(path: str) -> None:
    """For a path that leads nowhere as it is written."""
    if "%2f" in path.lower():
        raise Refused(400, "Ambiguous URI path separator", CLOSING)


def _plain(path: str) -> str:
    """Without what follows a semicolon in its segments: parameters, which no path of ours has."""
    if _BROKEN_ESCAPE.search(path):
        raise Refused(400, headers=CLOSING)
    if _ILLEGAL.search(path):
        raise Refused(400, "Illegal Path Character", CLOSING)
    segments = path.split("/")
    if "" in segments[1:-1]:
        raise Refused(400, "Ambiguous URI empty segment", CLOSING)
    return "/".join(map(_segment, segments))


def _segment(text: str) -> str:
    text, semicolon, _ = text.partition(";")
    if semicolon and text in (".", ".."):
        raise Refused(400, "Ambiguous URI path parameter", CLOSING)
    if "%" not in text:
        return text
    if _DOTS.fullmatch(text):
        raise Refused(400, "Ambiguous URI path segment", CLOSING)
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise Refused(400, "Bad UTF-8 encoding", CLOSING) from None
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in decoded):
        raise Refused(400, "Suspicious Path Character", CLOSING)
    return text
