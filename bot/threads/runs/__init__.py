"""Run an agent: its events, executions, policy and grants."""
