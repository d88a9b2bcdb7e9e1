"""One kernel for a whole run on a uniform mesh, written out from the rules of its system."""
