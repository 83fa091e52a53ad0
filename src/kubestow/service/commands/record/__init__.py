"""`kubestow record`: what a cluster's scheduler sees and decides, as a file."""
