"""Commands that play with a policy file: explain a call, and test cases."""
