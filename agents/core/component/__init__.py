"""A component's knowledge of its run: its place, its state, its answer, and what it shares."""
