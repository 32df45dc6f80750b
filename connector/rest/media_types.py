"""Which types of bodies a request sends and takes, read as strictly as Connect reads them.

In: the headers ``Accept`` and ``Content-Type``. Out: the type of the answer, with the parameters that were asked for;
``Refused`` with 400, 406 or 415.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from connector.http import JSON, Refused

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = rf'\s*({_TOKEN})=({_TOKEN}|"[^"\\]*")\s*'
_TYPE = re.compile(rf"\s*({_TOKEN})(?:/({_TOKEN}))?\s*((?:;(?:{_PARAMETER}|\s*))*)")
_PARAMETERS = re.compile(_PARAMETER)
#: Types that Connect's HTTP server knows are written in its way, whatever letters were asked for.
_KNOWN = (JSON, f"{JSON};charset=utf-8", f"{JSON};charset=iso-8859-1")
_QUALITY = re.compile(r"0?\.[0-9]{1,3}|0\.?|1(\.0{0,3})?")


@dataclass(frozen=True, slots=True)
class _MediaType:
    kind: str
    subtype: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def is_json(self) -> bool:
        return self.kind.lower() in ("application", "*") and self.subtype.lower() in ("json", "*")

    @property
    def quality(self) -> float:
        text = dict(self.parameters).get("q", "1")
        if not _QUALITY.fullmatch(text):
            raise Refused(400)
        return float(text)

    def __str__(self) -> str:
        """Without what says how much it is wanted; what has a wildcard is JSON alone."""
        if "*" in (self.kind, self.subtype):
            return JSON
        shown = (f";{name}={text}" for name, text in sorted(dict(self.parameters).items()) if name != "q")
        written = f"{self.kind}/{self.subtype}{''.join(shown)}"
        return written.lower() if written.lower() in _KNOWN else written


def type_of_the_answer(accept: str | None) -> str:
    """What is wanted most, and first."""
    given = (accept or "").strip() or "*/*"
    wanted = [_read(each) for each in given.removesuffix(",").split(",")]
    best = sorted(wanted, key=lambda each: -each.quality)
    found = next((each for each in best if each.is_json), None)
    if found is None:
        raise Refused(406)
    return str(found)


def refuse_foreign_type(content_type: str | None) -> None:
    """Of what is sent; it is looked at even where there is no body."""
    if content_type is None:
        return
    if "/" not in content_type:
        raise Refused(400)
    if not _read(content_type).is_json:
        raise Refused(415)


def says_json(content_type: str) -> bool:
    """By more than a wildcard."""
    return _read(content_type).subtype.lower() == "json"


def _read(text: str) -> _MediaType:
    found = _TYPE.fullmatch(text)
    if found is None:
        raise Refused(400)
    parameters = [(name.lower(), value) for name, value in _PARAMETERS.findall(found[3])]
    plain = tuple(
        (name, bare if re.fullmatch(_TOKEN, bare := value.strip('"')) else value) for name, value in parameters
    )
    return _MediaType(found[1], found[2] or "*", plain)
