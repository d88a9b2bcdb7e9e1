"""Limit cycles of delay equations: collocation, Floquet multipliers, continuation."""
