"""The commands. A module named after one has its command line only: options and help.

Such a module imports what does the work inside of its function, so that help, completion and a
wrong option load no scheduler, no simulator and no NumPy.
"""
