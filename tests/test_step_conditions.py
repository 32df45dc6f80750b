"""What is wrong with the predicate of a transform: the connector and the readers of its topics say the same."""

from __future__ import annotations

import pytest

from connector.step_conditions import step_condition
from smt.chain import build_chain
from smt.errors import SmtOptionError
from tests.config.files import problems

STEP = {"transforms": "d", "transforms.d.type": "DropHeaders", "transforms.d.headers": "h"}
PREDICATES = {"predicates": "tomb", "predicates.tomb.type": "RecordIsTombstone"}
NO_SUCH, NOTHING, NEITHER = (
    "`predicates` names no such predicate",
    "There is no predicate to be negated",
    "Must be true or false",
)


@pytest.mark.parametrize(
    ("predicate", "negate", "wrong"),
    [
        (None, None, {}),
        (" tomb ", " TRUE", {}),
        ("tomb", "false", {}),
        ("tom", None, {"predicate": NO_SUCH}),
        ("", "true", {"predicate": NO_SUCH}),
        (None, "true", {"negate": NOTHING}),
        (None, "yes", {"negate": NEITHER}),
        ("other", "1", {"predicate": NO_SUCH, "negate": NEITHER}),
    ],
)
def test_both_refuse_the_same_in_the_same_words(
    predicate: str | None, negate: str | None, wrong: dict[str, str]
) -> None:
    found = step_condition(predicate, negate, ["tomb"])
    assert {each.option: each.problem for each in found.wrong} == wrong
    if not wrong:
        assert (found.predicate, found.negate) == ((predicate or "").strip(), (negate or "").strip() == "TRUE")
    given = {"predicate": predicate, "negate": negate}
    lines = {**STEP, **PREDICATES} | {f"transforms.d.{name}": text for name, text in given.items() if text is not None}
    expected = {f"transforms.d.{option}": problem for option, problem in wrong.items()}
    told = problems(lines)
    assert {each.property: each.problem for each in told} == expected
    if not wrong:
        build_chain(lines)
        return
    with pytest.raises(SmtOptionError) as error:
        build_chain(lines)
    assert {each.option: each.problem for each in error.value.problems} == expected
    # What has to be there beside it.
    lacks = {f"transforms.d.{each.option}": f"transforms.d.{each.lacks}" for each in found.wrong if each.lacks}
    hints = {each.option: each.suggestion for each in error.value.problems}
    for hinted in (hints, {each.property: each.suggestion for each in told}):
        assert {name: hinted[name] for name in lacks} == lacks
