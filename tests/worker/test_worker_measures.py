"""Histograms of what was committed: each batch once, with the time it took."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from connector.changes import Batch, WriteTimes
from connector.timeuuid import lowest_uuid
from connector.worker.measures import Histogram, Measures


def batch(ms: int, rows: int = 1, table: str = "ks.t") -> Batch:
    layout = SimpleNamespace(description=SimpleNamespace(full_name=table))
    return Batch(cast(Any, layout), b"stream", lowest_uuid(ms), cast(Any, [()] * rows))


@given(st.lists(st.floats(0, 200)), st.lists(st.floats(0, 200)))
def test_a_histogram_counts_each_value_at_its_bound(first: list[float], second: list[float]) -> None:
    bounds = (1.0, 10.0, 100.0)
    histogram = Histogram(bounds)
    histogram.observe(Counter(first))
    histogram.observe(Counter(second))
    found, values = histogram.status(), first + second
    for at, bound in enumerate(bounds):
        assert sum(found.counts[: at + 1]) == sum(value <= bound for value in values)
    assert sum(found.counts) == len(values)


@given(st.lists(st.integers(0, 20), min_size=1))
def test_values_that_are_there_several_times_count_as_often(values: list[int]) -> None:
    one_by_one, counted = Histogram((1.0, 2.0, 5.0)), Histogram((1.0, 2.0, 5.0))
    for value in values:
        one_by_one.observe({value: 1})
    counted.observe(Counter(values))
    assert one_by_one.status() == counted.status()


@given(st.integers(0, 400), st.lists(st.integers(-5, 400), min_size=1))
def test_ages_are_counted_together_as_they_are_each(age: int, seconds: list[int]) -> None:
    now, histogram = 10**15, Histogram((1.0, 10.0, 100.0))
    times = [now - (age + more) * 1_000_000 for more in seconds]
    histogram.observe_ages(now, WriteTimes.of(times))
    expected = Histogram((1.0, 10.0, 100.0))
    expected.observe(Counter(max(0.0, (now - time) / 1_000_000) for time in times))
    assert histogram.status() == expected.status()


def test_a_batch_counts_when_its_transaction_is_committed() -> None:
    measures = Measures()
    measures.added([batch(1_000), batch(9_000, rows=3)], records=4)
    measures.added([batch(9_900, table="ks.u")], records=1)
    assert not measures.latency
    measures.committed(now_ms=10_000)
    latency = measures.latency["ks.t"].status()
    assert latency.sum == 10.0 and dict(zip(latency.bounds, latency.counts, strict=False)) | {1.0: 1, 10.0: 1} == dict(
        zip(latency.bounds, latency.counts, strict=False)
    )
    assert measures.latency["ks.u"].status().sum == 0.1
    assert (measures.rows["ks.t"].status().sum, measures.records.status().sum) == (4, 5)


def test_an_aborted_transaction_counts_nothing_and_its_batches_count_once() -> None:
    measures = Measures()
    for _ in range(3):
        measures.added([batch(1_000)], records=1)
        measures.forget()
    measures.committed(now_ms=2_000)
    assert not measures.latency and sum(measures.records.status().counts) == 0
    measures.added([batch(1_000)], records=1)
    measures.committed(now_ms=2_000)
    measures.committed(now_ms=3_000)
    assert sum(measures.latency["ks.t"].status().counts) == 1


def test_a_clock_that_is_ahead_is_no_negative_latency() -> None:
    measures = Measures()
    measures.added([batch(5_000)], records=1)
    measures.committed(now_ms=4_000)
    assert measures.latency["ks.t"].status().sum == 0
