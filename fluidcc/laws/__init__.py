"""Laws of congestion control as rules for single packet events, each written once."""
