"""Taking a rule out of the product, in memory: a piece of a file's text is replaced, changed functions are exchanged.

In: a file, text that stands in it exactly once, the text instead. Out: for the duration of `applied` the loaded module
behaves as if it had been written so; whoever holds one of its functions or classes holds the changed one.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Mutant:
    """``rule``: what the product promises and this breaks; ``killer`` raises where it is broken."""

    rule: str
    file: str
    old: str
    new: str
    killer: Callable[[], None]

    @property
    def source(self) -> str:
        return (ROOT / self.file).read_text(encoding="utf-8")

    @property
    def changed(self) -> str:
        found = self.source.count(self.old)
        assert found == 1, f"{self.rule}: {self.old!r} stands {found} times in {self.file}"
        return self.source.replace(self.old, self.new)


def of(test: Callable[..., None], *given: Any) -> Callable[[], None]:
    """A test with one of its cases."""
    killer: Any = partial(test, *given)
    killer.__name__ = test.__name__
    return killer  # type: ignore[no-any-return]


@contextlib.contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    module = importlib.import_module(mutant.file.removesuffix(".py").replace("/", "."))
    before, after = (compile(text, mutant.file, "exec") for text in (mutant.source, mutant.changed))
    old, new = _codes(before), _codes(after)
    wanted = {name for name in old if name in new and _differ(old[name], new[name])}
    undo: list[Callable[[], None]] = []
    try:
        for function in _functions(module):
            name = function.__code__.co_qualname
            if name in wanted:
                undo.append(_exchange(function, new[name]))
        for name, value in _constants(mutant, module).items():
            was = vars(module)[name]
            undo.append(lambda name=name, was=was: setattr(module, name, was))  # type: ignore[misc]
            setattr(module, name, value)
        assert undo, f"{mutant.rule}: nothing that runs was changed"
        _forget(module)
        yield
    finally:
        for each in reversed(undo):
            each()
        _forget(module)


def _forget(module: ModuleType) -> None:
    """Answers that the other text has given."""
    for value in vars(module).values():
        if value is not None and hasattr(value, "cache_clear"):
            value.cache_clear()


def _exchange(function: FunctionType, code: CodeType) -> Callable[[], None]:
    was = function.__code__
    function.__code__ = code
    return lambda: setattr(function, "__code__", was)


def _codes(code: CodeType) -> dict[str, CodeType]:
    """Of a module: every function that is not inside another, by its qualified name."""
    found: dict[str, CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & 0x2:  # it has fast locals: a function, and not a class's body
                found[each.co_qualname] = each
            else:
                found |= _codes(each)
    return found


def _differ(one: CodeType, other: CodeType) -> bool:
    """In what they do, wherever they stand."""
    parts = [(each.co_code, each.co_names, each.co_varnames, len(each.co_consts)) for each in (one, other)]
    if parts[0] != parts[1]:
        return True
    return any(
        _differ(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) != (type(b), b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    yield from _members(vars(module), module.__name__, set())


def _members(space: Any, module: str, seen: set[int]) -> Iterator[FunctionType]:
    for value in list(space.values()):
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type) and value.__module__ == module:
            yield from _members(vars(value), module, seen)
        parts = [value.fget, value.fset] if isinstance(value, property) else [value]
        if isinstance(value, cached_property):
            parts = [value.func]
        for part in parts:
            inner = getattr(part, "__func__", part)
            inner = getattr(inner, "__wrapped__", inner)
            if isinstance(inner, FunctionType) and inner.__module__ == module:
                yield inner


def _constants(mutant: Mutant, module: ModuleType) -> dict[str, Any]:
    """What the module assigns otherwise than before."""
    found: dict[str, Any] = {}
    before = {ast.dump(node) for node in ast.parse(mutant.source).body if isinstance(node, ast.Assign)}
    for node in ast.parse(mutant.changed).body:
        if isinstance(node, ast.Assign) and ast.dump(node) not in before and isinstance(node.targets[0], ast.Name):
            value = compile(ast.Expression(node.value), mutant.file, "eval")
            found[node.targets[0].id] = eval(value, dict(vars(module)))
    return found
