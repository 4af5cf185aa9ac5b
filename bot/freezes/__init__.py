"""Freezes: stop every start of a call in a scope, in all processes, until people lift it."""
