"""The process: command line, start-up, leader election, HTTPS, metrics and shutdown.

The only folder that reads arguments, environment and signals, and the only one that decides which
clock and which cluster the rest gets to see.
"""
