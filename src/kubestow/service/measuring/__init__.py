"""Reads what nodes and pods use, in the background, for the plugin LoadAware.

reader        the loop: one read after the other, within a time limit; what is known of its state
metrics_api   metrics.k8s.io, from any metrics server
prometheus    the query API of Prometheus
usage_file    a file of measurements, as `kubestow.usage.file_format` describes it

Loaded only where a profile enables the plugin. Nothing here is called in a scheduling cycle.
"""
