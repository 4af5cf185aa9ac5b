"""Slack's surface for agents."""
