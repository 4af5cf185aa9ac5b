"""The edit form: one typed input per argument, drawn and parsed."""
