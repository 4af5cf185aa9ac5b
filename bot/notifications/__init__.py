"""Notifications: preferences and quiet hours."""
