"""What keeps the actors running and shows them to clients and operators.

Nothing is imported here: it would be loaded before `supervisor.__main__` can say what signals mean.
"""
