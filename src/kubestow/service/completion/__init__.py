"""Completion of a word of the command line, for shells and for kubectl.

    shells    what a shell sends and how it reads the answer
    words     which words can follow
    table     options, flags and names that are always the same, as a file
    objects   pods and nodes, of files or a cluster

Typer could do it, but takes a quarter of a second to load, at each press of TAB.
"""
