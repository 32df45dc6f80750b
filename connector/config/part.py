"""``Part``: the form of all typed parts of a configuration.

In: values by property name. Out: frozen models that compare, pickle, and are made by member name as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_T = TypeVar("_T")

#: Java's files say "none" with an empty text.
OrNone = Annotated[_T | None, BeforeValidator(lambda given: given or None)]


def of(name: str, **more: Any) -> Any:
    """A member that has the value of the property ``name``."""
    return Field(validation_alias=name, **more)


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, validate_by_name=True, validate_by_alias=True)

    @classmethod
    def made_of(cls, values: Mapping[str, Any], /, **others: Any) -> Self:
        """From the parsed values of properties; ``others`` are members that are no property's value as it is."""
        return cls.model_validate({**values, **others})

    def but(self, **changed: Any) -> Self:
        """A copy with other values."""
        return self.model_copy(update=changed)
