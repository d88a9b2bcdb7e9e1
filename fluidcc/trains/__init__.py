"""Trains of packets: flows as individuals, packets in steps, signals as single events."""
