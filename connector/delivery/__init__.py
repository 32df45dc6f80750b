"""Transactional producer, offsets topic, claims, topics, dead letters. Interprets no rows."""
