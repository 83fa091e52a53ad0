"""What happens to a write before it is stored: patches, defaults, validation, admission."""
