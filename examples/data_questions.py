"""An example agent that answers questions about data: totals at once, personal data after approval.

The database is in memory and opened for reading. The model is a small function, so that the
example needs no API key.
"""

import sqlite3

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say

ROWS = [
    ("Eve Berg", "eve@example.com", "Oslo", 240.0),
    ("Tom Lund", "tom@example.com", "Oslo", 19.5),
    ("Ida Moe", "ida@example.com", "Bergen", 80.0),
]


def query(sql: str, *values: object) -> list[tuple[object, ...]]:
    """Run a fixed query; values are bound, and never become part of its text."""
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE orders (name TEXT, email TEXT, city TEXT, total REAL)")
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ROWS)
        database.execute("PRAGMA query_only = ON")
        return database.execute(sql, values).fetchall()


@tool(tags=["read-only"])
def total_by_city(city: str) -> str:
    """Return how many orders a city has, and their total."""
    ((count, total),) = query(
        "SELECT count(*), coalesce(sum(total), 0) FROM orders WHERE city = ?", city
    )
    return f"{city}: {count} orders, {total:.2f} €"


def effect(city: str, purpose: str) -> str:
    """Say what is read; approvers see it on the card."""
    ((count,),) = query("SELECT count(*) FROM orders WHERE city = ?", city)
    return f"Shows names and addresses of {count} customers in this thread. Purpose: {purpose}"


@tool(
    title="List the customers in {city}",
    preview=effect,
    gate="approval",
    risk="high",
    tags=["personal-data"],
)
def list_customers(city: str, purpose: str) -> str:
    """Return names and mail addresses of customers.

    Args:
        city: Where the customers live.
        purpose: What the list is for.
    """
    rows = query("SELECT name, email FROM orders WHERE city = ? ORDER BY name", city)
    return "; ".join(f"{name}, {email}" for name, email in rows)


def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    """Call one tool for the question, then repeat its result."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return [say(str(last.content))]
    text = str(last.content) if isinstance(last, UserPromptPart) else ""
    city = "Bergen" if "Bergen" in text else "Oslo"
    if "who" in text.lower():
        return [call("list_customers", {"city": city, "purpose": text})]
    return [call("total_by_city", {"city": city})]


def build(model: Model) -> Agent:
    """Build the agent. Countersign calls this function once, at start."""
    return ChatModelAgent(
        name="data_questions",
        model=AnsweringModel(answer, name="example"),
        instruction="You answer questions about orders.",
        tools=[total_by_city, list_customers],
    )
