"""Fixtures of the storage tests."""

from tests.mongo import collected

__all__ = ["collected"]
