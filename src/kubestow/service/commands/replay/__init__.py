"""`kubestow replay`: a recording, played again."""
