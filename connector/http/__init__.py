"""An HTTP server that lives beside other work in a process and cannot harm it: bounded connections, time and sizes.

In: an address, routes (plain functions from a `Request` to an `Answer`), who may ask. Out: a thread that answers. The
library behind it is Tornado, which nothing outside of this room sees.
"""

from __future__ import annotations

from connector.http.access import Access, is_loopback
from connector.http.exchange import (
    JSON,
    Answer,
    Handler,
    Refused,
    Request,
    Route,
    answer_json,
    answer_text,
)
from connector.http.server import HttpServer

__all__ = [
    "JSON",
    "Access",
    "Answer",
    "Handler",
    "HttpServer",
    "Refused",
    "Request",
    "Route",
    "answer_json",
    "answer_text",
    "is_loopback",
]
