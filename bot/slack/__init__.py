"""The Slack app: Bolt listeners, cards, modals, and API calls."""
