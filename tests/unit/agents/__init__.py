"""Tests of the runtime: no I/O."""
