"""Block Kit without a client: text, arguments, blocks, the names of buttons, and forms."""
