"""The page, its interface, and the control interface for tests."""
