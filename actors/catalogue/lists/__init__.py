"""From a page that a server sent to an offer: each entry read alone, and what is odd about it."""
