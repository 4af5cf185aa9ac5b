"""Frameworks for agents ask people: the real libraries, with models that follow a script."""
