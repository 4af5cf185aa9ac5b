"""Block Kit layout without a client: texts, arguments, blocks, and forms."""
