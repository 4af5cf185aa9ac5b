"""Notifications: preferences, quiet hours, working days, daily digests."""
