"""Exhaustive exploration of the real rules in small worlds."""
