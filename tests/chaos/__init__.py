"""Several bots, a Slack and a database that misbehave, people who click, processes that die."""
