"""Nodes at work: the engine, one node's run, its questions, and breakpoints."""
