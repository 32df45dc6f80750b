"""How a Schema Registry is asked: in time, with its logins, and what it refuses in words. Knows no records.

SchemaRegistry(RegistryConfig(("http://127.0.0.1:8081",))).schema_of(7)
"""

from __future__ import annotations

from connector.registry.client import SchemaRegistry
from connector.registry.patient import PatientRegistry

__all__ = ["PatientRegistry", "SchemaRegistry"]
