"""The database's upkeep: forgetting, restoring, and threads that come back."""
