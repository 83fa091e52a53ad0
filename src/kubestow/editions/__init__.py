"""Versions of Kubernetes: what is different in each, chosen when a scheduler is built."""
