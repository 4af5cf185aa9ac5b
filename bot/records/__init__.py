"""The documents that every feature reads, with their stores; they know no feature."""
