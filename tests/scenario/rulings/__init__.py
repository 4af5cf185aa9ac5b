"""Rules in code that name different people."""
