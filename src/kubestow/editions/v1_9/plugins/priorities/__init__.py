"""The v1.9 priorities, one module each; scores are 0 to 10."""
