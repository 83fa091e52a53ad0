"""The scheduling rules: one module per plugin, named after it, answering for all nodes at once.

A plugin is a pure function of the snapshot, the pod and the cycle state. One plugin never imports
another; what two of them need is in `_shared` or in a lower layer.
"""
