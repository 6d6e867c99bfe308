"""Who issues tokens for a server: found, registered at, asked, and what they answer."""
