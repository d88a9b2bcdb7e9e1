"""Sweeps: grids in chunks, by processes or a cluster, kept in a folder."""
