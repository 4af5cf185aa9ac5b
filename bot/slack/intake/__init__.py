"""The ways in: what Slack sends, over HTTP or a socket, on its way to Bolt."""
