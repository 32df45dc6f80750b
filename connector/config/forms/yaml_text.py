"""YAML as Kubernetes reads it: plain words are texts, numbers, true and false, or nothing; a time is a text. And as
compose does, to which `yes` and `off` are texts.

In: the text of a file. Out: its documents, as JSON would hold them; ``ValueError`` with the place of what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from connector.config.forms.repeated import Repeated, repeated_pairs
from connector.config.forms.written_over import OverridingList, OverridingMap, Reset

#: More values than any configuration has; few anchors are enough to write far more.
_MOST_VALUES = 100_000
_MERGE = "tag:yaml.org,2002:merge"
_COMPOSE = re.compile(r"^(?:services|include)[ \t]*:", re.MULTILINE)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Safe, and with the plain words of Kubernetes' reader alone: no dates, no numbers of base 60."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    tells_lines = False

    def mapping(self, node: yaml.MappingNode) -> Repeated:
        # What `<<` brings along is there to be written over.
        keys = [key for key, _ in node.value if key.tag != _MERGE]
        for origin in [origin for key, value in node.value if key.tag == _MERGE for origin in (value, *value.value)]:
            # It stands before, so it is made already.
            brought = self.constructed_objects.get(origin) if isinstance(origin, yaml.Node) else None
            if isinstance(brought, Repeated):
                brought.is_brought_along = True
        self.flatten_mapping(node)
        pairs = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a name that is no text", key.start_mark)
            pairs.append((key.value, self.construct_object(value, deep=True)))
        found = repeated_pairs(pairs, [key.value for key in keys])
        if self.tells_lines:
            found.lines = {
                name: [key.start_mark.line + 1 for key in keys if key.value == name] for name in found.repeated
            }
        return found


class _OfCompose(_Loader):
    """With the tags that a file has which is read over another one."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def overriding(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return OverridingMap(self.mapping(node))
        if isinstance(node, yaml.SequenceNode):
            return OverridingList(self.construct_sequence(node, deep=True))
        return self.construct_scalar(node)


def _number(text: str) -> int | float | str:
    plain = text.replace("_", "")
    try:
        return int(plain, 0) if not re.fullmatch(r"[-+]?0[0-9]+", plain) else int(plain, 8)
    except ValueError:
        found = float(plain)
        # As Go writes it: 1e3 is 1000.
        return int(found) if found.is_integer() and abs(found) < 1e21 else found


def _resolve(tag: str, pattern: str, first: str, made: Callable[[str], Any], *loaders: type[_Loader]) -> None:
    for loader in loaders or (_Loader, _OfCompose):
        loader.add_implicit_resolver(tag, re.compile(pattern), list(first))
    _Loader.add_constructor(tag, lambda loader, node: made(loader.construct_scalar(node)))


_BOOL = "tag:yaml.org,2002:bool"
_TRUE = ("true", "yes", "on")
_WORDS = r"(?:true|True|TRUE|yes|Yes|YES|on|On|ON|false|False|FALSE|no|No|NO|off|Off|OFF)\Z"
_resolve(_BOOL, _WORDS, "tTyYoOfFnN", lambda text: text.lower() in _TRUE, _Loader)
_resolve(_BOOL, r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF", lambda text: text.lower() in _TRUE, _OfCompose)
_resolve("tag:yaml.org,2002:null", r"(?:~|null|Null|NULL|)\Z", "~nN", lambda text: None)
for _each in (_Loader, _OfCompose):
    _each.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
    _each.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])
_resolve(
    "tag:yaml.org,2002:int",
    r"[-+]?(?:0|[1-9][0-9_]{0,300}|0[0-7_]{1,300}|0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)\Z",
    "-+0123456789",
    _number,
)
_resolve(
    "tag:yaml.org,2002:float",
    r"[-+]?(?:(?:[0-9][0-9_]*\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)\Z",
    "-+.0123456789",
    _number,
)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.mapping)
# Those of CloudFormation, GitLab, Ansible: what stands there is made by another tool.
_Loader.add_multi_constructor("!", lambda loader, suffix, node: f"{{{{ !{suffix} }}}}")
_OfCompose.add_constructor("!override", _OfCompose.overriding)
_OfCompose.add_constructor("!reset", lambda loader, node: Reset())


def yaml_documents(text: str, *, tells_lines: bool = False) -> list[Any]:
    """All documents of a file but empty ones. ``tells_lines``: those of what is given twice are the file's own."""
    try:
        loader = _OfCompose(text) if _COMPOSE.search(text) else _Loader(text)
        loader.tells_lines = tells_lines
        try:
            found = []
            while loader.check_node():
                node = loader.get_node()
                _size(node, {})
                found.append(loader.construct_document(node))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"{error.problem or error.context or 'cannot be read'}{place}") from None
    except (yaml.YAMLError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise ValueError(reason) from None
    return [document for document in found if document is not None]


def _size(node: Any, sizes: dict[int, int]) -> int:
    """How many values a node has with its aliases written out; ``ValueError`` where that is past all reason."""
    known = sizes.get(id(node))
    if known is not None:
        if known == 0:
            raise ValueError("an alias that contains itself")
        return known
    sizes[id(node)] = 0
    inner: list[Any] = []
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    size = 1 + sum(_size(part, sizes) for part in inner)
    if size > _MOST_VALUES:
        raise ValueError("more values than a configuration has")
    sizes[id(node)] = size
    return size
