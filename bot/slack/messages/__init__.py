"""Messages in Slack: cards, reminders, agents' texts, ephemeral messages."""
