"""A server of the Python SDK's FastMCP, for the catalogue of the outside tests."""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("letters", host="127.0.0.1", port=int(sys.argv[1]), log_level="WARNING")


@server.tool()
def count_letters(text: str, letter: str) -> int:
    """Counts how often a letter occurs in a text."""
    return text.count(letter)


server.run(transport="streamable-http")
