"""Receive Slack's requests over HTTP or Socket Mode, for Bolt."""
