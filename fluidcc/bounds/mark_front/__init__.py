"""Bounds of Durresi et al. (2001), section 4: thresholds and queues of one connection."""
