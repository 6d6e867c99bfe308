"""The dashboard, for browsers: what the pages under `/api` say, as HTML that works without a script."""
