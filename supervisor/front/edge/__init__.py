"""From sockets to requests of HTTP and messages of WebSockets: connections and their bounds."""
