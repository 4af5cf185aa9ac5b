"""Slack's agent view: prompts, title, stop button. All optional."""
