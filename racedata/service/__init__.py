"""The online half: answers requests from the database."""
