"""Adapters: frameworks for agents that stop for people, joined with Countersign.

One module for each framework, which it imports: langgraph, langchain, pydantic_ai, openai_agents.
"""
