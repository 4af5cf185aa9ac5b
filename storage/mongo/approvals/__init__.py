"""Approvals in MongoDB: what is asked and decided, and what attending to them writes."""
