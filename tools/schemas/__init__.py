"""What is derived from structs and commands and kept as a file of the package."""
