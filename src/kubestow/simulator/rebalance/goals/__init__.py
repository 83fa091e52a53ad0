"""Figures of a cluster that a plan makes better, one file each; `reading` parses their names."""
