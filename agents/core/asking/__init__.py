"""Questions about a call, and all that answers them."""
