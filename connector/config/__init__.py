"""Every property, declared once: loading, validation (all problems in one answer), names of topics and schemas. Opens no connection."""
