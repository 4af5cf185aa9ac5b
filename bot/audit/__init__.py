"""The audit: its acts, the entries of each change, and reports."""
