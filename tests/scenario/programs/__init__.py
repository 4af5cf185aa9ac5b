"""What programs see, with the client: each scenario runs with the sync and the async client."""
