"""Runs of the v1.9 scheduler: a simulation of it, and the replay of its recorded decisions."""
