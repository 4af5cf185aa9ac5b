"""Deliveries to the app: events, by HTTP or Socket Mode, and planned faults."""
