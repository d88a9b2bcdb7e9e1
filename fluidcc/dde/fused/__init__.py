"""One kernel for whole runs on a uniform mesh, generated from the right-hand side of a system."""
