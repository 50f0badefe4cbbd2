"""The offline half: reads sources, keeps what they say, and builds the database."""
