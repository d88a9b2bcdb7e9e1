"""Window laws, one a file."""
