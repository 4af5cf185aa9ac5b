"""Slack's surface for agents: prompts to begin with, a title, a stop button. All of it may lack."""
