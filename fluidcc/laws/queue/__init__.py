"""Queue laws, one a file."""
