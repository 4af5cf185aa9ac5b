"""Requests about a tool call and their answers."""
