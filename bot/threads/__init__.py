"""One agent per Slack thread: messages, turns, texts."""
