"""The Slack app: Bolt, its listeners, its cards and forms, and the calls to Slack."""
