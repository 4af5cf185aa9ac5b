"""Messages in Slack: cards and what stands beside them, the agents' texts, private words."""
