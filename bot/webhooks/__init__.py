"""Webhooks: tell a program's endpoint what happens with the program's requests."""
