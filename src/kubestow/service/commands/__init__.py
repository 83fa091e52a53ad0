"""The commands. A module named after one, or `command` in a folder named after it, has its command
line only: options and help.

Such a module imports what does the work inside of its function, so that help, completion and a
wrong option load no scheduler, no simulator and no NumPy. Beside them is what commands share.
"""
