"""Reads a policy file: source positions, checks, and look-ups in Slack."""
