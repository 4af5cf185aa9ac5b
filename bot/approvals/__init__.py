"""Requests for approval: who votes, what is decided, and what else people can do."""
