"""Threads of a graph: stored, resumed, read, and edited."""
