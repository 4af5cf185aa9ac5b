"""The ports of the use cases: the clock, the people, and the way to show things to them."""
