"""Cards and modals: pure functions from records to Block Kit. No Slack client, no clock."""
