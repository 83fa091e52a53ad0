"""`kubestow bench`: how fast pods are decided on, and its other measurements."""
