"""Decisions: votes, withdrawals, and what somebody has to have seen before they agree."""
