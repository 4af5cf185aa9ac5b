"""The audit: the entries that are made, all of them here."""
