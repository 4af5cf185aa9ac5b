"""People in Slack for programs that speak the Model Context Protocol.

`countersign-ask mcp-proxy` stands before a server of tools and holds each call until people have
approved it. `countersign-ask mcp` is a server of tools by which an agent asks people itself.
"""
