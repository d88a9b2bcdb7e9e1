"""What every law must satisfy: the checks behind `fluidcc check-law`, and behind the tests."""
