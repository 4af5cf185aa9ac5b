"""The workspace: people, channels, messages, views, and their shapes."""
