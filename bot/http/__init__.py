"""HTTP servers of the bot: limits of connections, listening, and the health probes."""
