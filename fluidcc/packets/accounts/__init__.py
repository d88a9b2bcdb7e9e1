"""What runs say: metrics, samples, traces."""
