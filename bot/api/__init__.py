"""The HTTP door for programs: they ask, and people decide in Slack. No route decides."""
