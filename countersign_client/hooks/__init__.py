"""Hooks of coding agents: ask people before a call, and say their decision as the agent takes it.

A hook fails closed: what goes wrong is printed as a refusal that is no rejection. Agents read many
forms of a refusal as "go on", so that `agents` knows the one of each agent that holds a call.
"""
