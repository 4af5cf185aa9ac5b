"""Slack's Block Kit rules, read strictly."""
