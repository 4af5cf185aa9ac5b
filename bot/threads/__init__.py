"""One agent for each Slack thread: messages in, turns, texts out."""
