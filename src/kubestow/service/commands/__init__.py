"""One module per command: its options and output. What it does is in other folders."""
