"""A registry that is slow for one subject answers for others meanwhile, and its answer counts when it comes."""

from __future__ import annotations

import threading

import pytest

from connector.config import RegistryConfig
from connector.errors import FatalDeliveryError, LoginRefused, RetriableDeliveryError
from connector.registry import patient
from connector.registry.client import SchemaRegistry
from connector.registry.patient import PatientRegistry
from tests.servers.patience import until


class Registry(SchemaRegistry):
    """Answers for the subject ``slow`` when ``answers`` is set."""

    def __init__(self, answers: threading.Event, asked: list[str]) -> None:
        super().__init__(RegistryConfig(urls=("http://registry:8081",)))
        self._answers, self._subjects = answers, asked

    def id_for(self, subject: str, schema_json: str) -> int:
        self._subjects.append(subject)
        if subject == "slow":
            assert self._answers.wait(90)
        if subject == "refused":
            raise FatalDeliveryError("incompatible")
        if subject == "unknown user":
            raise LoginRefused("the login was refused")
        return 7


@pytest.fixture(autouse=True)
def _a_quick_answer_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that asks gets no processor for a while, where others want it."""
    monkeypatch.setattr(patient, "PATIENCE_SECONDS", 90.0)


def test_a_slow_answer_for_one_subject_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = threading.Event(), list[str]()
    registry = PatientRegistry(lambda: Registry(answers, asked))
    with monkeypatch.context() as short:
        short.setattr(patient, "PATIENCE_SECONDS", 0.1)
        with pytest.raises(RetriableDeliveryError, match=r"registry:8081 has not answered for subject slow yet"):
            registry.id_for("slow", "{}")
    for _ in range(2):
        with pytest.raises(RetriableDeliveryError, match=r"registry:8081 has not answered for subject slow yet"):
            registry.id_for("slow", "{}")
    assert registry.id_for("quick", "{}") == registry.id_for("quick", "{}") == 7
    assert sorted(asked) == ["quick", "slow"], "each is asked once"
    answers.set()

    def answered() -> int | None:
        try:
            return registry.id_for("slow", "{}")
        except RetriableDeliveryError:
            return None

    assert until(answered) == 7
    assert sorted(asked) == ["quick", "slow"]


def test_a_refusal_is_told_and_the_question_asked_again() -> None:
    asked: list[str] = []
    registry = PatientRegistry(lambda: Registry(threading.Event(), asked))
    for _ in range(2):
        with pytest.raises(FatalDeliveryError, match="incompatible"):
            registry.id_for("refused", "{}")
    assert len(asked) == 2


def test_a_refused_login_stands_until_something_else_is_answered() -> None:
    registry = PatientRegistry(lambda: Registry(threading.Event(), []))
    for subject, refusal in (
        ("unknown user", "the login was refused"),
        ("refused", None),
        ("unknown user", "the login was refused"),
    ):
        with pytest.raises(FatalDeliveryError):
            registry.id_for(subject, "{}")
        assert registry.refusal == refusal
    assert registry.id_for("quick", "{}") == 7 and registry.refusal is None
