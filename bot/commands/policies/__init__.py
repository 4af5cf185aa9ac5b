"""Commands that use a policy file: explain a call, and test cases."""
