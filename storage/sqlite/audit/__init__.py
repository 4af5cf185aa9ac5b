"""The audit in SQLite: its entries, and their chain."""
