"""The database file: its lock, its permissions, and the threads that use it."""
