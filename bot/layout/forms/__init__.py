"""The edit form: one typed input per argument, out and back."""
