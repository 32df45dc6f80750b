"""What the parts of a path name.

In: requests. Out: connectors, numbers of tasks; ``Refused`` with 404, in Connect's words, where there is no such thing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from connector.errors import CdcError, StillRunning
from connector.http import Refused, Request
from connector.rest.cluster import Cluster, ConnectorView

T = TypeVar("T")
_AMBIGUOUS = {
    "/": "Ambiguous URI path separator",
    "%": "Ambiguous URI path encoding",
    "\\": "Suspicious Path Character",
}


async def asked(question: Callable[[], T]) -> T:
    """What may take a while, in another thread than the server's; its error is the answer."""
    try:
        return await asyncio.to_thread(question)
    except StillRunning as error:
        raise Refused(409, str(error)) from None
    except CdcError as error:
        raise Refused(500, str(error)) from None


def found_view(cluster: Cluster, name: str, missing: str) -> ConnectorView:
    """The connector of that name."""
    for view in cluster.connectors():
        if view.name == name:
            return view
    raise Refused(404, missing)


def task_number(request: Request) -> int:
    """What is no int of Java's is no path."""
    text = request.parts["task"]
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or not -(2**31) <= int(text) < 2**31:
        raise Refused(404, "HTTP 404 Not Found")
    return int(text)


def refuse_ambiguous(cluster: Cluster, parts: Mapping[str, str]) -> None:
    """As Connect's server does it; but a connector that has such a name can be asked for here."""
    for text in parts.values():
        found = next((why for letter, why in _AMBIGUOUS.items() if letter in text), None)
        if found is not None and all(view.name != text for view in cluster.connectors()):
            raise Refused(400, found)


def flag(request: Request, name: str) -> bool:
    """As Java reads a Boolean: whatever is not true is false."""
    return any(text.lower() == "true" for text in request.query.get(name, ())[:1])
