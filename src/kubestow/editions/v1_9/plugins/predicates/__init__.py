"""The v1.9 predicates, one module each."""
