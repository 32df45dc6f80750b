"""Prometheus' rules over pages of metrics, as far as the shipped rules need them.

In: the file of rules, and pages of ``/metrics`` with their times. Out: the names of the alerts that fire at the end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]
Series = Mapping[tuple[str, Labels], float]
Page = tuple[float, Series]

_UNITS = {"s": 1, "m": 60, "h": 3600}
_RULE = re.compile(r"(?P<left>.+?)\s*(?P<op>>|<|==)\s*(?P<right>[\d.]+)$")
_AGGREGATE = re.compile(r"(?P<how>sum|min|max)(?: by \((?P<by>[^)]*)\) )?\((?P<inner>.+)\)$")
_INCREASE = re.compile(r"increase\((?P<name>\w+)\[(?P<span>\d+)(?P<unit>[smh])\]\)$")
_FOLDS: dict[str, Any] = {"sum": sum, "min": min, "max": max}


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
    absent = re.fullmatch(r"absent\((\w+)\)", expression)
    if absent:
        return set() if _vector(absent[1], pages) else {()}
    rule = _RULE.match(expression)
    assert rule is not None, expression
    bound = float(rule["right"])
    comparisons = {">": lambda value: value > bound, "<": lambda value: value < bound}
    holds = comparisons.get(rule["op"], lambda value: value == bound)
    return {labels for labels, value in _vector(rule["left"], pages).items() if holds(value)}


def _vector(expression: str, pages: Sequence[Page]) -> dict[Labels, float]:
    aggregate = _AGGREGATE.match(expression)
    if aggregate:
        by = {label.strip() for label in (aggregate["by"] or "").split(",")}
        groups: defaultdict[Labels, list[float]] = defaultdict(list)
        for labels, value in _vector(aggregate["inner"], pages).items():
            groups[tuple(each for each in labels if each[0] in by)].append(value)
        return {labels: _FOLDS[aggregate["how"]](values) for labels, values in groups.items()}
    increase = _INCREASE.match(expression)
    if increase:
        return _increases(increase["name"], int(increase["span"]) * _UNITS[increase["unit"]], pages)
    assert re.fullmatch(r"\w+", expression), expression
    return {labels: value for (name, labels), value in pages[-1][1].items() if name == expression}


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
