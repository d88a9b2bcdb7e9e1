"""What is drawn into a figure for each kind of result."""
