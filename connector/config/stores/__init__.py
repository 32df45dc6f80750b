"""Stores of secrets on servers, which `config.providers` names: HashiCorp Vault and AWS Secrets Manager.

In: the parameters of a provider. Out: the values that a store has at a path. Their clients are optional extras,
imported when the first reference is looked up; no other module of this room opens a connection.
"""

from __future__ import annotations

from connector.config.stores.secrets_manager import open_secrets_manager
from connector.config.stores.store import SecretStore, StoreError
from connector.config.stores.vault import open_vault

__all__ = ["SecretStore", "StoreError", "open_secrets_manager", "open_vault"]
