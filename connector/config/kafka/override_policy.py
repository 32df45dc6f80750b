"""Which properties of Kafka clients a connector's file may set: the worker's `connector.client.config.override.policy`.

In: the policy as the worker's file names it, a property of a client. Out: why a connector may not set it, as Kafka
Connect says it; whether the policy is known.
"""

from __future__ import annotations

_SUFFIX = "connectorclientconfigoverridepolicy"

#: What a connector may set by each; None: anything. As in Kafka Connect 4.1.
_ALLOWED: dict[str, frozenset[str] | None] = {
    "all": None,
    "none": frozenset(),
    "principal": frozenset({"security.protocol", "sasl.mechanism", "sasl.jaas.config"}),
}


def known_policy(text: str) -> str | None:
    """The policy that is meant, by its short name or that of its class; None if it is a class of somebody's own.

    >>> known_policy("org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy")
    'none'
    """
    name = text.strip().rpartition(".")[2].lower().removesuffix(_SUFFIX)
    return name if name in _ALLOWED else None


def refused_override(text: str, name: str) -> str | None:
    """Why a connector may not set this property of its clients."""
    policy = known_policy(text)
    allowed = _ALLOWED[policy] if policy is not None else None
    if policy is None or allowed is None or name in allowed:
        return None
    also = f" (it allows {', '.join(sorted(allowed))})" if allowed else ""
    return (
        f"The '{policy.title()}' policy does not allow '{name}' to be overridden in the connector configuration: the "
        f"worker has connector.client.config.override.policy={text.strip()}{also}"
    )
