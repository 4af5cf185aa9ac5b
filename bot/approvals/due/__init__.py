"""Due work of approvals: cards, reminders, escalation, expiry."""
