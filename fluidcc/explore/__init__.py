"""An explorer in the browser: every answer follows from a scenario and changes to it."""
