"""What a compose file says of what another one says: it is to be written over (`!override`), or there is to be none
(`!reset`). Anything else is merged.

In: values. Out: the same, which know it.
"""

from __future__ import annotations

from typing import Any

from connector.config.forms.repeated import Repeated


class OverridingMap(Repeated):
    """Nothing of what stood there is left."""


class OverridingList(list[Any]):
    """Nothing of what stood there is left."""


class Reset:
    """There is none, whatever stood there and stands here."""


def writes_over(value: Any) -> bool:
    return isinstance(value, OverridingMap | OverridingList | Reset)
