"""From sockets to ASGI: connections, their bounds, and whom we talk to."""
