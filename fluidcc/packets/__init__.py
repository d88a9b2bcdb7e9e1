"""Packet-level simulation of the same laws: one event at a time, compiled once."""
