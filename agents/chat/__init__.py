"""The agent that asks a model: its loop, its state, and its instruction."""
