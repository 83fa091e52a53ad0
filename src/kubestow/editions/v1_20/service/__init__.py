"""The process of a v1.17 or v1.20 scheduler."""
