"""`kubestow capacity`: how many more fit, how many nodes are needed, which could go."""
