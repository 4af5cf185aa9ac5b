"""Functions that a component calls for its address, state, answer and shared values."""
