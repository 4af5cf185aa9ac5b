"""People's messages: what arrives, what becomes of it, and what people change about it."""
