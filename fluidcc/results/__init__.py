"""Results: tables, drawings, LaTeX, export and comparison."""
