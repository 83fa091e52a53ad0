"""The cycles of v1.17 and v1.20, where they differ from those of today."""
