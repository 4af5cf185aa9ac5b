"""The messages beside the cards: pure functions from records to Block Kit."""
