"""From a query to a page: its words as terms, documents scored, the best of them chosen."""
