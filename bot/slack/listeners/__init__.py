"""Listeners by kind of Slack payload: parse, call one use case, respond."""

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
"""Events that the app subscribes to, as in manifest.yml (`message.*` by place)."""
