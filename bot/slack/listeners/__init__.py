"""One function per kind of Slack payload: read it, call a use case, answer. No business here."""

EVENTS = ("agent_session_stopped", "app_home_opened", "app_mention", "message")
"""The events that the app subscribes to; manifest.yml names the same (`message.*` by place)."""
