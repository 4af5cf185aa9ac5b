"""The Web API and response_url."""
