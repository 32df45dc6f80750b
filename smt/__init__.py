"""Flattening of change records: pure functions over decoded records, standard library only."""
