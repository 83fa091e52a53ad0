"""The process: command line, start-up, leader election, HTTPS, metrics and shutdown.

The only folder that reads arguments, environment and signals, and that chooses the clock and the
cluster for the rest.
"""
