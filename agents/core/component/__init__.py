"""What a component reads from its run: address, state, answer and shared values."""
