"""What several plugins need, by subject; no plugin imports another.

Not here: what one plugin alone needs, and what does not use nodes as arrays (`api`).
"""
