"""Threads of a graph: stored, resumed, read, and changed by hand."""
