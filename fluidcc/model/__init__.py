"""From a network to a delay system: senders, links, delays and traffic."""
