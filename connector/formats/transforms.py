"""The chain of transforms that a connector's configuration names, run on decoded records.

In: ``TransformSpec``s. Out: one callable from a record to a record, or to None where a transform drops it.
Their order is that of the configuration; a transform with a predicate leaves records alone that the
predicate does not choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connector.config import OutputConfig, PredicateSpec, TransformNote, TransformSpec
from connector.errors import Problem
from connector.formats.record import DecodedRecord
from connector.step_defaults import of_the_connector
from smt import IN_CELLS, Place, SmtError, SmtOptionError, build_predicate, build_transform, chosen, ignored_options
from smt import Record as SmtRecord
from smt import Transform as SmtTransform

#: An option of InsertField for records that were read from Kafka.
_OFFSET = "offset.field"
#: The predicate that looks at nothing else.
_BY_TOPIC = "TopicNameMatches"


@dataclass(frozen=True, slots=True)
class OfTopic:
    """``topic`` is where its records go, ``changing`` are the steps that they take and that do more than that."""

    topic: str
    changing: tuple[SmtTransform, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A transform that minds the predicate of its spec."""

    transform: SmtTransform
    spec: TransformSpec

    def takes(self, topic: str) -> bool | None:
        """Whether records of a topic take the step; None: that depends on more than their topic."""
        predicate = self.spec.predicate
        if predicate is None:
            return True
        if predicate.type != _BY_TOPIC:
            return None
        return build_predicate(predicate.type, predicate.options)(SmtRecord(topic, None, {})) != self.spec.negate


@dataclass(frozen=True, slots=True)
class Chain:
    """All transforms, one after the other. ``losses`` are what they lose, one line each, to be said at start."""

    steps: tuple[Step, ...]
    losses: tuple[str, ...] = ()

    #: Whether it changes the topics of records and nothing else, by nothing else than their topics.
    routes: bool = False

    def routed(self, topic: str, *, tombstone: bool = False) -> str:
        """Where records of a topic go, if the chain only routes, or routes and unwraps."""
        record = self(DecodedRecord(topic, None, None, None, None if tombstone else {}))
        assert record is not None
        return record.topic

    def of_topic(self, topic: str) -> OfTopic | None:
        """What becomes of the records of a topic, where nothing else of them decides which steps they take."""
        changing = []
        for step in self.steps:
            chosen_by_topic = step.takes(topic)
            if chosen_by_topic is None:
                return None
            if chosen_by_topic and step.transform.routes:
                routed = step.transform.apply(SmtRecord(topic, None, {}))
                assert routed is not None
                topic = routed.topic
            elif chosen_by_topic:
                changing.append(step.transform)
        return OfTopic(topic, tuple(changing))

    def headers_beside(self, record: DecodedRecord) -> list[tuple[str, Any]]:
        """What Java's transforms leave in the record's own headers, which a delete shares with its tombstone.

        Debezium's adds to those; all others go on with a copy, as everything does behind any of them.
        """
        if all(step.transform.gives is None for step in self.steps):
            return record.headers
        current = _taken(record)
        for step in self.steps:
            given = step.transform.gives(current) if step.transform.gives is not None else []
            if given:
                return [*record.headers, *given]
            try:
                if step.transform.apply(current) is not current:
                    break
            except SmtError:
                break
        return record.headers

    def __call__(self, record: DecodedRecord) -> DecodedRecord | None:
        current: SmtRecord | None = _taken(record)
        for step in self.steps:
            assert current is not None
            current = step.transform.apply(current)
            if current is None:
                return None
        assert current is not None
        return DecodedRecord(
            topic=current.topic,
            key_schema=current.key_schema,
            key=current.key,
            value_schema=current.value_schema,
            value=current.value,
            headers=current.headers,
            kind=record.kind,
            partition=record.partition,
            timestamp=record.timestamp,
        )


def _taken(record: DecodedRecord) -> SmtRecord:
    place = Place(record.partition, record.timestamp)
    return SmtRecord(
        record.topic, record.key, record.value, record.headers, record.key_schema, record.value_schema, place
    )


def output_chain(output: OutputConfig) -> Chain | None:
    """The chain of a connector, as its converter and its format want it; None if it has no transforms."""
    values = output.value_converter
    schemaless = values.kind == "json" and not values.schemas_enable
    return build_transforms(output.transforms, schemaless, output.strict, cells=IN_CELLS[output.format])


def build_transforms(
    specs: Sequence[TransformSpec], schemaless_output: bool = False, strict: bool = False, cells: bool = True
) -> Chain | None:
    """The whole chain, or None if there is nothing in it; ``SmtOptionError`` if a transform refuses its options.

    ``schemaless_output``: values are written without schemas. ``strict``: as the Java transforms do it, even where it
    loses records. ``cells``: whether columns come in cells, of which transforms may lose what they tell.
    """
    if not specs:
        return None
    steps, losses = [], []
    for spec in specs:
        step = build_step(spec, schemaless_output, strict, cells)
        steps.append(Step(step, spec))
        losses += [f"transform {spec.alias}: {loss}" for loss in step.losses]
    # Headers are the one thing that tells records of a topic apart before they are transformed.
    by_topic = all(spec.predicate is None or spec.predicate.type != "HasHeaderKey" for spec in specs)
    routes = by_topic and all(step.transform.routes for step in steps)
    return Chain(tuple(steps), tuple(losses), routes)


def build_step(
    spec: TransformSpec, schemaless_output: bool = False, strict: bool = False, cells: bool = True
) -> SmtTransform:
    """One step, with its predicate."""
    options = of_the_connector(spec.type, spec.options, strict=strict) | dict(spec.options)
    built = build_transform(spec.type, options, schemaless_output=schemaless_output, unset=True, cells=cells)
    if spec.predicate is None:
        return built
    applies = build_predicate(spec.predicate.type, spec.predicate.options)
    of_all = built.gives
    gives = None if of_all is None else lambda record: of_all(record) if applies(record) != spec.negate else []
    return SmtTransform(
        built.type, chosen(built.apply, applies, spec.negate), built.losses, built.routes, built.unwraps, gives=gives
    )


def check_transform(
    spec: TransformSpec | PredicateSpec, schemaless_output: bool = False
) -> list[Problem | TransformNote]:
    """What is wrong with the class or the options of a transform or a predicate, and which of them are ignored: the
    ``transform_check`` of ``config.load``."""
    try:
        if isinstance(spec, PredicateSpec):
            build_predicate(spec.type, spec.options)
            return [TransformNote(option, text) for option, text in ignored_options(spec.type, spec.options)]
        built = build_transform(spec.type, spec.options, schemaless_output=schemaless_output)
    except SmtOptionError as error:
        return [Problem(found.option, found.problem, suggestion=found.suggestion) for found in error.problems]
    if spec.type.startswith("InsertField$") and _OFFSET in spec.options:
        text = "Would fail with every record: they have no offset before they are in Kafka"
        return [Problem(_OFFSET, text, suggestion="leave it out: consumers have the offset beside the record")]
    return [TransformNote(option, text) for option, text in built.ignored]
