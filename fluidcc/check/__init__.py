"""Requirements on every law: the checks of `fluidcc check-law`, and of the tests."""
