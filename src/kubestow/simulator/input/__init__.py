"""The cluster that a simulation begins with: read from a server, changed on the way in, saved.

Every command that takes a cluster (`simulate`, `capacity`) uses these.
"""
