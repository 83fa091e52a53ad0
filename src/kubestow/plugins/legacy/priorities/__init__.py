"""The v1.9 priorities, one module each; scores go from 0 to 10."""
