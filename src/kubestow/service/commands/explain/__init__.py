"""`kubestow explain`: why a pod is where it is, or waits."""
