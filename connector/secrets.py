"""The one filter for text that leaves the process: it knows every secret that was resolved, and what stands for it.

In: secrets, where they are made of files, references and the environment (`register`), and text at each exit
(`scrub`, `scrubbed`, `scrubbed_json`, `FilteredStream`). Out: the text with each secret replaced, by asterisks or by
the reference that was resolved. A worker process is told what its supervisor knows (`known`, `adopt`).
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, cast
from urllib.parse import quote, quote_plus

MASK = "********"

#: Shorter ones are not looked for: every other word would turn into asterisks, and so betray them.
LEAST = 4
#: Shorter ones count only as a whole word, longer ones wherever they appear.
ANYWHERE = 8
#: Words that our own messages are made of, and names of classes in them: masking them would hide the message and tell
#: the password.
COMMON = frozenset(
    re.findall(
        r"[a-z]+",
        """
        admin amazon apache avro broker cassandra changes client common config confluent connect connector consumer
        converter converters debezium default disabled enabled error example failed false filter guest home host http
        https info java json kafka key keyspace localhost login message name none null offset offsets orders pass
        passwd password plain port producer public records registry required root schema scylla scylladb secret secrets
        security server shop snapshot source state status storage stream table test token topic transforms true unknown
        url user username value values warning worker write
        """,
    )
)


_HALVES: Final = "surrogatepass"


class _Known:
    """Spellings of secrets and what is shown for each."""

    def __init__(self) -> None:
        self.shown: dict[str, str] = {}
        self.spellings: dict[str, str] = {}
        self.lock = threading.Lock()

    def add(self, text: str, shown: str) -> None:
        with self.lock:
            if text not in self.shown:
                self.shown[text] = shown
                # A new mapping: whoever is reading the old one is not disturbed.
                self.spellings = {**dict.fromkeys(_spellings(text), shown), **self.spellings}


_known = _Known()


def hideable(text: str) -> bool:
    """Whether the filter can look for this secret at all."""
    text = text.strip()
    return len(text) >= LEAST and text.lower() not in COMMON


def register(text: str, shown: str = MASK) -> bool:
    """From now on ``shown`` stands for ``text``; False if it is too short or too common to be looked for."""
    if not hideable(text):
        return False
    _known.add(text, shown)
    return True


def known() -> Mapping[str, str]:
    """Each secret and what stands for it: for a process that this one starts, through a pipe."""
    return dict(_known.shown)


def adopt(secrets: Mapping[str, str]) -> None:
    """Knows what another process knows."""
    for text, shown in secrets.items():
        register(text, shown)


def scrub(text: str) -> str:
    """The text without the secrets that are known."""
    spellings = _known.spellings
    found = [each for each in spellings if each in text]
    if not found:
        return text
    # Of two that begin at one place the longer one is meant.
    patterns = (_pattern(each) for each in sorted(found, key=len, reverse=True))
    return re.sub("|".join(patterns), lambda match: spellings[match.group()], text)


def scrubbed(value: Any) -> Any:
    """The same value with every text in it scrubbed. Keys are names, which stay: they are looked up."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {name: scrubbed(member) for name, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [scrubbed(member) for member in value]
    return value if value is None or isinstance(value, int | float) else scrub(str(value))


def scrubbed_json(text: str) -> str:
    """A JSON text with every text in it scrubbed, as `scrubbed` does."""
    # Without an escape each text in it stands there as it is: what the whole does not hold, none of them does.
    if text.isascii() and "\\" not in text and not any(each in text for each in _known.spellings):
        return text
    return json.dumps(scrubbed(json.loads(text)), separators=(",", ":"))


def holds_secret(text: str) -> bool:
    """Whether a known secret stands in the text."""
    return scrub(text) != text


class FilteredStream:
    """A text stream whose lines pass the filter: for what libraries and the interpreter print by themselves."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(scrub(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def filtered(stream: IO[str]) -> IO[str]:
    """The stream with the filter before it, once."""
    return stream if isinstance(stream, FilteredStream) else cast(IO[str], FilteredStream(stream))


def _pattern(text: str) -> str:
    """Matches the text; a short one only where no letter or digit continues it."""
    escaped = re.escape(text)
    return escaped if len(text) >= ANYWHERE else rf"(?<![A-Za-z0-9]){escaped}(?![A-Za-z0-9])"


def _spellings(text: str) -> Iterator[str]:
    """How a secret may look by the time it is printed: trimmed, quoted for a URL, JSON or Python, in Base64."""
    for plain in dict.fromkeys((text, text.strip(), *_lines(text))):
        cased = (plain, plain.upper(), plain.lower()) if len(plain) > LEAST else (plain,)
        for each in dict.fromkeys(cased):
            yield each
            yield json.dumps(each)[1:-1]
            yield json.dumps(each, ensure_ascii=False)[1:-1]
            yield repr(each)[1:-1]
            # Files may hold what is no text: halves of characters.
            yield repr(each.encode(errors=_HALVES))[2:-1]
            yield quote(each, safe="", errors=_HALVES)
            yield quote(each, errors=_HALVES)
            yield quote_plus(each, errors=_HALVES)
        yield from _base64(plain)


def _lines(text: str) -> Iterator[str]:
    """The lines of a key or a certificate that say something by themselves."""
    if "\n" in text.strip():
        yield from (line.strip() for line in text.splitlines() if len(line) >= 2 * ANYWHERE and "-----" not in line)


def _base64(text: str) -> Iterator[str]:
    if len(text) >= LEAST:
        encoded = base64.b64encode(text.encode(errors=_HALVES)).decode()
        yield encoded
        yield encoded.rstrip("=")
