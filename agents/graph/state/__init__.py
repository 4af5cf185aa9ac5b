"""The state of a graph: its keys, its shape, and where a thread stands."""
