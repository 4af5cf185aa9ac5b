"""SQLite under exceptions, a hanging disk and files that were damaged by hand."""
