"""The fluid model: rates of events times changes, delays, and the integrators."""
