"""Why a pod is placed where it is, or waits, and what would make it fit.

`cluster` holds the objects of a cluster on which pods are tried without effect, `explanation` is
what is said about one pod, `suggestions` finds changes that make it fit.
"""
