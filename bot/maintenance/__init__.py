"""Upkeep: retention, restore, sealing of the audit, clocks."""
