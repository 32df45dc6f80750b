"""A worker of whose variables some have their value elsewhere: in a map of a cluster, or made while a script runs.

In: variables, those references to a variable of the same name here, and why. Out: the worker's properties and notes.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.config.environment import is_idle, worker_properties
from connector.config.substitution import reference


def worker_with_references(
    variables: Mapping[str, str], image: str, elsewhere: Mapping[str, str]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """As ``worker_properties``. A reference without effect would only be missed. ``elsewhere``: why, by variable."""
    properties, notes = worker_properties(variables, image)
    content = {
        name: text for name, text in properties.items() if not (is_idle(name) and text.startswith(reference("")[:-1]))
    }
    said = {
        reference(variable): f"{why}: it is taken from the variable {variable} here"
        for variable, why in elsewhere.items()
    }
    return content, [*notes, *((name, said[text]) for name, text in content.items() if text in said)]
