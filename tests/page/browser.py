"""A real browser without a window: Debian's chromium, told what to do by its chromedriver over HTTP.

In: pages, scripts, keys. Out: what a page answers, pictures of it, what it complained about. Where either program is
missing, `tests/debian_programs.py` leaves the tests out, aloud.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.servers.patience import seldom, until

#: As WebDriver names keys that are no characters.
TAB, ENTER, ESCAPE, SPACE = "\ue004", "\ue007", "\ue00c", " "
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)
_CALL_SECONDS = 120.0


class Browser:
    """A context manager: one browser with one window; ends with its driver."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="page-browser-", ignore_cleanup_errors=True)
        self._said: list[str] = []
        self._session = ""
        self._start_driver()

    def __enter__(self) -> Browser:
        port = until(self._port, 60, lambda: f"chromedriver's port in {self._said}", step=self._start_driver_again)
        self._url = f"http://127.0.0.1:{port}/session"
        options = {"args": [*_ARGUMENTS, f"--user-data-dir={self._profile.name}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/{made['sessionId']}"
        return self

    def __exit__(self, *why: object) -> None:
        try:
            if self._session:
                self._call("DELETE", self._session)
        finally:
            self._end_driver()
            self._profile.cleanup()

    def open(self, url: str) -> None:
        self._call("POST", f"{self._session}/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a function's body returns in the page."""
        return self._call("POST", f"{self._session}/execute/sync", {"script": script, "args": [*arguments]})

    def press(self, *keys: str) -> None:
        """For whatever has the focus."""
        pressed = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", f"{self._session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": pressed}]})

    def click(self, selector: str) -> None:
        """As a finger does: it must be there to be hit."""
        element = self._call("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        self._call("POST", f"{self._session}/element/{next(iter(element.values()))}/click", {})

    def devtools(self, command: str, **arguments: Any) -> Any:
        return self._call("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": arguments})

    def looks_like(self, width: int, height: int, *, dark: bool = False) -> None:
        """A window of that size; a phone, if it is narrow."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def complaints(self) -> list[str]:
        """What the page logged since the last call: errors, refusals of its policy."""
        logged = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [each["message"] for each in logged]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """``whole``: of all of the page, however long it is."""
        taken = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def text(self, selector: str = "body") -> str:
        """What stands there; nothing if there is no such place."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def shows(self, *words: str, selector: str = "body", seconds: float = 60) -> str:
        """Waits until all of the words stand there; the whole text then."""

        def found() -> str | None:
            text = self.text(selector)
            return text if all(word in text for word in words) else None

        return str(until(found, seconds, lambda: f"{words} in: {self.text(selector)}"))

    def until(self, script: str, *arguments: Any, seconds: float = 60) -> Any:
        return until(lambda: self.run(script, *arguments), seconds, f"{script}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{method} {path}: {json.load(error)['value']['message']}") from None

    def _start_driver(self) -> None:
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self._listen, args=[self._driver.stdout], daemon=True).start()

    def _start_driver_again(self) -> None:
        """The port that it is given for IPv6 may be another program's for IPv4: it ends then."""
        seldom()
        if self._driver.poll() is not None:
            self._end_driver()
            self._start_driver()

    def _end_driver(self) -> None:
        self._driver.kill()
        self._driver.wait()
        assert self._driver.stdout is not None
        self._driver.stdout.close()

    def _listen(self, spoken: Iterable[str]) -> None:
        for line in spoken:
            self._said.append(line)

    def _port(self) -> int | None:
        found = re.search(r"successfully on port (\d+)", "".join(self._said))
        return int(found[1]) if found else None
