"""Maintenance: retention, restore, audit sealing, clock checks."""
