"""What a request line asks for: the path in its parts, and the query.

In: the target as it was sent. Out: path and query; ``Refused`` with 400, as Kafka Connect's server does it, where
programs could take the path for different things.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from connector.http.exchange import Refused

MOST_FIELDS = 100
_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})|%00")
_DOTS = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


def target_of(text: str) -> tuple[str, dict[str, list[str]]]:
    """Proxies write the host before the path, which is ours whatever it is called."""
    try:
        path, _, query = text.partition("?")
        if path.startswith(("http://", "https://")):
            path = urlsplit(path).path or "/"
        return _plain(path), parse_qs(query, keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(400) from None


def _plain(path: str) -> str:
    """Without what follows a semicolon in its segments: parameters, which no path of ours has."""
    if _BROKEN_ESCAPE.search(path):
        raise Refused(400)
    segments = path.split("/")
    if "" in segments[1:-1]:
        raise Refused(400, "Ambiguous URI empty segment")
    return "/".join(map(_segment, segments))


def _segment(text: str) -> str:
    text = text.partition(";")[0]
    if "%" not in text:
        return text
    if _DOTS.fullmatch(text):
        raise Refused(400, "Ambiguous URI path segment")
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise Refused(400, "Bad UTF-8 encoding") from None
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in decoded):
        raise Refused(400, "Suspicious Path Character")
    return text
