"""Configuration: settings, the agents that they name, and the app's manifest."""
