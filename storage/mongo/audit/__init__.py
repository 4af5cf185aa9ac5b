"""The audit in MongoDB: its entries, and their chain."""
