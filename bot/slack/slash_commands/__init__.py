"""Typed commands: after the slash command, or after a mention in a thread."""
