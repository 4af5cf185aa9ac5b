"""Approvals: votes, decisions, edits, grants, and secondary actions."""
