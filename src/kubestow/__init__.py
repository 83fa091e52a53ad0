"""kubestow: a Kubernetes scheduler that decides as kube-scheduler does.

The folders follow the architecture; the `__init__.py` of each says what it is for. Imports go one
way, from `service` at the top down to `api`. Nothing is imported here, so that using one part does
not load the others.
"""

__version__ = "0.1.0"
