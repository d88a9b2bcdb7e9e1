"""Results of runs: metrics, samples, traces."""
