"""A graph's state: its keys, the graph's structure, and the place of a thread."""
