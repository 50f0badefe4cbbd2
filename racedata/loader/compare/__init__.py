"""What comparing finds: two databases, or what sources say about the same."""
