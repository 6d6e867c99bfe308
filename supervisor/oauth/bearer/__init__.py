"""Tokens of identity providers that clients show us: whose they are, by a signature or by asking the provider."""
