"""What v1.9, v1.17 and v1.20 have in common: the Policy, and assumed pods that expire."""
