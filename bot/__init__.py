"""Countersign: a Slack bot that asks people before an agent acts."""
