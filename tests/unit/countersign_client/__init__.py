"""Tests of the parts of the client for programs."""
