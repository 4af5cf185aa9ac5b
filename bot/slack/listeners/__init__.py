"""One function per kind of Slack payload: read it, call a use case, answer. No business here."""

EVENTS = (
    "agent_session_stopped",
    "app_home_opened",
    "app_mention",
    "member_joined_channel",
    "member_left_channel",
    "message",
    "subteam_created",
    "subteam_members_changed",
    "subteam_updated",
    "user_change",
)
"""The events that the app subscribes to; manifest.yml names the same (`message.*` by place)."""
