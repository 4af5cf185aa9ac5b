"""Render reminders and other messages from records. Pure."""
