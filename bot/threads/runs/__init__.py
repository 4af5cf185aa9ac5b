"""A run of an agent: what it shows, what it starts, what it is allowed."""
