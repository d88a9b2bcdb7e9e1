"""Trains of packets: flows as individuals, packets as fluid amounts, signals as single events."""
