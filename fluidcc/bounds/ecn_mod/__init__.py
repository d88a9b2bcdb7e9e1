"""Bounds of Misra and Ott (2003): the polynomial class and ECN-mod."""
