"""The web page of the service at `/ui`, and the JSON that it needs beside `/status`.

In: `Details`, which knows what only Kafka or the workers can say. Out: routes for an HTTP server. The page is made
of the files of this folder as they are: nothing is built, and nothing comes from another host.
"""

from __future__ import annotations

from connector.page.routes import Details, page_routes

__all__ = ["Details", "page_routes"]
