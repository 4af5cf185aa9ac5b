"""Messages, and what people change about them."""
