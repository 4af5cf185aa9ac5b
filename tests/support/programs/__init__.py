"""A server for programs to test clients with: in memory, and no kinder than openapi.yaml."""
