"""Pattern 5, supervisor: it hands parts of a task to others, and comes back after each of them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.decorator import tool
from agents.prebuilt.supervisor import supervisor
from agents.tools.actions import EXIT_NAME, TRANSFER_NAME, exit_tool
from agents.workflows.transfer import transfer_tool_to
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice
from bot.demo.replies import report

EXAMPLE = "check my checking account balance, then transfer $500 from checking to savings"
INSTRUCTION = """\
You lead account_agent, who knows balances, and transaction_agent, who transfers money. Hand over
to one of them at a time, in the order of the request. When all is done, call `exit` with a summary.
Do nothing yourself.
"""
_BALANCES = {"checking": 5000, "savings": 15000, "main": 5000}
_ACCOUNT = r"([a-z]+)"

Account = Annotated[str, Field(pattern=r"^[a-z]{1,20}$")]
Amount = Annotated[Decimal, Field(gt=0, decimal_places=2, max_digits=9)]


@tool(title="Look up the balance of {account_id}")
def check_balance(account_id: Account) -> str:
    """Look up the balance of an account. Changes nothing.

    Args:
        account_id: Which account: checking, savings or main.
    """
    return f"The balance of {account_id} is {_BALANCES.get(account_id, 1000)} USD"


def _moves(from_account: str, to_account: str, amount: Decimal, currency: str) -> str:
    return f"Takes {amount:.2f} {currency} from {from_account}, and puts it into {to_account}."


@tool(
    title="Transfer {amount} {currency} from {from_account} to {to_account}",
    preview=_moves,
    gate="approval",
    batch_title="{n} transfers, {amount:sum} {currency} in total",
    batch_key="amount",
)
def transfer_funds(
    from_account: Account,
    to_account: Account,
    amount: Amount,
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD",
) -> dict[str, str]:
    """Transfer money between two accounts. People are asked first.

    Args:
        from_account: Where the money comes from.
        to_account: Where it goes.
        amount: How much.
        currency: In which currency, such as USD.
    """
    moved = f"{amount:.2f} {currency} from {from_account} to {to_account}"
    return {
        "transaction_id": "TXN-2025-001234",
        "status": "completed",
        "message": f"Successfully transferred {moved}",
    }


def build(model: Model) -> Agent:
    """Make `financial_supervisor`, and the two agents that it leads."""
    workers = [
        ChatModelAgent(
            name="account_agent",
            description="Looks up balances.",
            model=voice(model, look_up),
            instruction="You look up balances, and say them in one sentence.",
            tools=[check_balance],
        ),
        ChatModelAgent(
            name="transaction_agent",
            description="Transfers money; people are asked first.",
            model=voice(model, transfer),
            instruction="You transfer money, and say what became of it in one sentence. "
            "Never try a transfer again that was rejected.",
            tools=[transfer_funds],
        ),
    ]
    head = ChatModelAgent(
        name="financial_supervisor",
        description="Balances and transfers.",
        model=voice(model, lead),
        instruction=INSTRUCTION,
        tools=[transfer_tool_to(workers), exit_tool()],
    )
    return supervisor(supervisor=head, sub_agents=workers)


def lead(current: CurrentRequest) -> Reply:
    """Hand over to whoever has not had a turn yet, then sum up."""
    asked_for = [
        name
        for name, words in (("account_agent", r"\bbalance\b"), ("transaction_agent", r"\btransfer"))
        if re.search(words, current.request, re.IGNORECASE)
    ]
    if not asked_for:
        return Reply(hint(EXAMPLE))
    been = [
        str(done.arguments["agent_name"]) for done in current.done if done.tool == TRANSFER_NAME
    ]
    ahead = [name for name in asked_for if name not in been]
    if ahead:
        return Reply("", (call(TRANSFER_NAME, agent_name=ahead[0]),))
    texts = [current.words_of(name) for name in asked_for]
    summary = "\n".join(["All in all:", *(f"- {text}" for text in texts if text)])
    return Reply("", (call(EXIT_NAME, final_result=summary),))


def look_up(current: CurrentRequest) -> Reply:
    """Look up the account that is named."""
    if current.done:
        return Reply(report(current.done))
    account = first_group(rf"{_ACCOUNT}\s+account", current.request) or "main"
    return Reply("", (call("check_balance", account_id=account.lower()),))


def transfer(current: CurrentRequest) -> Reply:
    """Transfer what is asked for."""
    if current.done:
        receipt = first_group(r'"message":\s*"([^"]+)"', current.done[-1].result)
        return Reply(f"{receipt}." if receipt else report(current.done))
    amount = first_group(r"\btransfer\w*\s+[€$]?(\d+(?:\.\d{1,2})?)", current.request)
    source = first_group(rf"\bfrom\s+(?:my\s+|the\s+)?{_ACCOUNT}", current.request)
    target = first_group(rf"\bfrom\s.*?\bto\s+(?:my\s+|the\s+)?{_ACCOUNT}", current.request)
    if not (amount and source and target):
        return Reply("I need an amount and two accounts: transfer $500 from checking to savings.")
    wanted = call(
        "transfer_funds", from_account=source.lower(), to_account=target.lower(), amount=amount
    )
    balance = _BALANCES.get(source.lower(), 1000)
    return Reply(f"The balance of {source} is {balance} USD, which covers it.", (wanted,))
