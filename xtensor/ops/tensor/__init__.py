"""What a tensor itself can do: convert, leave, show itself, answer questions."""
