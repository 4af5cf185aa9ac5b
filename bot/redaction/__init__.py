"""Masks: secrets by name, by form, and by the operator's rules."""
