"""Nodes at work: the steps of a graph, one node's run, its questions, and breakpoints."""
