"""Prometheus' rules over pages of metrics, as far as the shipped rules need them.

In: the file of rules, and pages of ``/metrics`` with their times. Out: the names of the alerts that fire at the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.worker.promql import Aggregate, Binary, Call, Number, Query, Selector, parsed

Labels = tuple[tuple[str, str], ...]
Series = Mapping[tuple[str, Labels], float]
Page = tuple[float, Series]

_UNITS = {"s": 1, "m": 60, "h": 3600}
_FOLDS: dict[str, Any] = {"sum": sum, "min": min, "max": max}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {"/": lambda a, b: a / b, "-": lambda a, b: a - b}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
}


def page(text: bytes) -> Series:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def firing(rules: Path, pages: Sequence[Page]) -> set[str]:
    """The alerts that fire when the last page has been scraped."""
    return {*alerts(rules, pages)}


def alerts(rules: Path, pages: Sequence[Page]) -> dict[str, list[dict[str, str]]]:
    """Those, each with the labels for which it fires."""
    [group] = yaml.safe_load(rules.read_text())["groups"]
    found = {rule["alert"]: _fires(rule, pages) for rule in group["rules"]}
    return {name: [dict(labels) for labels in sorted(all_labels)] for name, all_labels in found.items() if all_labels}


def _fires(rule: Mapping[str, str], pages: Sequence[Page]) -> set[Labels]:
    lasting = _seconds(rule.get("for", "0s"))
    end = pages[-1][0]
    looked = [at for at, (time, _) in enumerate(pages) if time >= end - lasting]
    if lasting and pages[0][0] > end - lasting:
        return set()
    return set.intersection(*(_true_for(rule["expr"], pages[: at + 1]) for at in looked))


def _true_for(expression: str, pages: Sequence[Page]) -> set[Labels]:
    return {*_vector(parsed(expression), pages)}


def _vector(query: Query, pages: Sequence[Page]) -> dict[Labels, float]:
    match query:
        case Selector(name=name, labels=(), span=None):
            return {labels: value for (each, labels), value in pages[-1][1].items() if each == name}
        case Aggregate(how=how, by=by, inner=inner):
            groups: defaultdict[Labels, list[float]] = defaultdict(list)
            for labels, value in _vector(inner, pages).items():
                groups[tuple(each for each in labels if each[0] in by)].append(value)
            return {labels: _FOLDS[how](values) for labels, values in groups.items()}
        case Call(name="absent", arguments=(inner,)):
            return {} if _vector(inner, pages) else {(): 1.0}
        case Call(name="increase", arguments=(Selector(name=name, span=str(span)),)):
            return _increases(name, _seconds(span.strip("[]")), pages)
        case Binary(sign=sign, left=left, right=right):
            values, others = _vector(left, pages), _others(right, pages)
            both = {labels: (value, other) for labels, value in values.items() if (other := others(labels)) is not None}
            if sign in _COMPARISONS:
                return {labels: pair[0] for labels, pair in both.items() if _COMPARISONS[sign](*pair)}
            return {labels: _ARITHMETIC[sign](*pair) for labels, pair in both.items()}
    raise AssertionError(f"not known to the tests: {query}")


def _others(query: Query, pages: Sequence[Page]) -> Callable[[Labels], float | None]:
    """What the other side of an operator has for the same labels."""
    if isinstance(query, Number):
        return lambda labels: query.value
    return _vector(query, pages).get


def _increases(name: str, span: float, pages: Sequence[Page]) -> dict[Labels, float]:
    last: dict[Labels, float] = {}
    grown: dict[Labels, float] = {}
    for time, series in pages:
        if time < pages[-1][0] - span:
            continue
        for (each, labels), value in series.items():
            if each == name:
                before = last.get(labels, value)
                grown[labels] = grown.get(labels, 0.0) + (value - before if value >= before else value)
                last[labels] = value
    return grown


def _seconds(text: str) -> float:
    return float(text[:-1]) * _UNITS[text[-1]]
