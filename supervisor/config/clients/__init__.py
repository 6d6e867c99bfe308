"""The clients, a row each: where they keep servers, how they write one, and what each of their keys means."""
