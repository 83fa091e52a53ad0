"""What decides: one module per plugin, named after it, answering for all nodes at once.

A plugin is a pure function of the snapshot, the pod and the cycle state. One plugin never imports
another; what two of them need lives in `_shared` or moves down a layer.
"""
