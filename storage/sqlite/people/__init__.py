"""Rights of people, and lists that they are shown, in the embedded database."""
