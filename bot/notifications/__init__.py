"""When and how people are told: working hours, preferences, the daily digest."""
