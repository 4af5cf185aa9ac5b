"""The tables, and the steps that earlier ones take to become them."""
