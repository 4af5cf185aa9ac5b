"""Agents that can be interrupted, and resumed at the same point."""
