"""What is derived from the snapshot and kept up to date with it."""
