"""`kubestow upgrade`: what another version of Kubernetes changes."""
