"""People's doings: writing, clicking, and filling in forms."""
