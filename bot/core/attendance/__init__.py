"""The attendance to approvals: what is due is done, card by card, under a lease."""
