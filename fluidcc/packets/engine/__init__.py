"""The compiled part of the packet simulator: records, calendar, links, senders, receivers."""
