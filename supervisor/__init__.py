"""What keeps the actors running and shows them to clients and operators."""
