"""The use cases. They know no cards, no Slack, and no network."""
