"""``PatientRegistry``: a Schema Registry that keeps nobody waiting.

In: a question for a schema's id. Out: the id, or at once a RetriableDeliveryError while the registry has not answered:
it is asked in a thread of its own, so that a slow answer for one table delays no other one's records.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

from connector.aside import aside
from connector.errors import CdcError, LoginRefused, RetriableDeliveryError
from connector.registry.client import SchemaRegistry

# Of an answer that usually comes within milliseconds.
PATIENCE_SECONDS = 0.25

Question = tuple[str, str]


class PatientRegistry:
    """For one caller. ``make`` makes a registry with a connection of its own."""

    def __init__(self, make: Callable[[], SchemaRegistry]) -> None:
        self._make = make
        self._ids: dict[Question, int] = {}
        self._asked: dict[Question, Future[int]] = {}
        #: Nobody waits again for those that were waited for in vain.
        self._slow: set[Question] = set()
        #: What it says while it refuses the login.
        self.refusal: str | None = None

    def id_for(self, subject: str, schema_json: str) -> int:
        question = (subject, schema_json)
        known = self._ids.get(question)
        if known is not None:
            return known
        if question not in self._asked:
            self._asked[question] = aside(partial(self._answer, question), "schema-registry")
        try:
            known = self._asked[question].result(0 if question in self._slow else PATIENCE_SECONDS)
        except CdcError as error:
            self.refusal = str(error) if isinstance(error, LoginRefused) else None
            del self._asked[question]
            raise
        except TimeoutError:
            self._slow.add(question)
            raise RetriableDeliveryError(f"{self._make().address} has not answered for subject {subject} yet") from None
        self.refusal = None
        self._slow.discard(question)
        self._ids[question] = known
        del self._asked[question]
        return known

    def _answer(self, question: Question) -> int:
        with self._make() as registry:
            return registry.id_for(*question)
