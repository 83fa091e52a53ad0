"""Kinds that are served in more than one version: each is stored in one, and translated."""
