"""How bytes reach a server: processes, HTTP, WebSockets."""
