"""Calls that people let run: whether they may start, and how they ended."""
