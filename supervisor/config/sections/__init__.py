"""Objects within `supervisor` that have a form of their own."""
