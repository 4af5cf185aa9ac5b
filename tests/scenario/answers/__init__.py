"""What comes of answers, and of silence, where an agent's own code asks."""
