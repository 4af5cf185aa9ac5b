"""Approvals in SQLite: what is asked and decided, and what attending to them writes."""
