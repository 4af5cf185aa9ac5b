"""The proxy for servers of tools, by messages."""
