"""Render cards and modals from records as Block Kit. Pure."""
