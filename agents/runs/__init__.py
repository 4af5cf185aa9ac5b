"""Runs: a run's segments, its stored document, and the components it consists of."""
