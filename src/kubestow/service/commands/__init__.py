"""One module per command of the command line. What a command does lives elsewhere; here is its
face."""
