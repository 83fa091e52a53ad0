"""VolumeBinding: a pod goes where its volumes are, or where they can be made (spec 07 §2).

plugin        the extension points
search        one pod's volumes against all nodes
affinity      which nodes a volume can be reached from
free_volumes  existing volumes by class, size and node affinity
matching      existing volumes for unbound claims
provisioning  whether volumes can be made, with `capacity` for how much is left
scoring       preference for nodes by the storage left there (behind a gate)
assume_cache  volumes and claims as they will be once decisions are written
binding       reserving, writing and waiting
hints         which events may help
"""

from kubestow.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
