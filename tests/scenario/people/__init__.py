"""Who decides, who sees and who is told, through Slack's own payloads."""
