"""Threads of agents that no person starts: by a program, a trigger or a schedule."""
