"""The words that people type: after the slash command, or after a mention in a thread."""
