"""Logs, metrics, traces, and whether the bot is ready."""
