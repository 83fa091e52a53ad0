"""Placement by what nodes really use (docs/guides/load-aware.md). Off by default.

plugin      the extension points
rows        measurements, estimates and verdicts as arrays over the rows of the snapshot
placed      pods that were placed a moment ago and are not measured yet
estimates   what a pod is expected to use
scoring     scores by forecast use; as Trimaran's plugins: `trimaran`, `overcommitment`
"""

from kubestow.plugins.load_aware.plugin import LoadAware

__all__ = ["LoadAware"]
