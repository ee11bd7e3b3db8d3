"""The same server with the Python SDK's second version, which speaks both eras."""

import sys

from mcp.server import MCPServer

server = MCPServer("letters", log_level="WARNING")


@server.tool()
def count_letters(text: str, letter: str) -> int:
    """Counts how often a letter occurs in a text."""
    return text.count(letter)


server.run(transport="streamable-http", port=int(sys.argv[1]))
