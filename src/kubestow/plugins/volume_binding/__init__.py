"""VolumeBinding: a pod goes where its volumes are, or can be provisioned (spec 07 §2).

plugin        the extension points
search        one pod's volumes against all nodes
affinity      which nodes a volume can be reached from
free_volumes  existing volumes by class, size and node affinity
demand        what a claim requires of a volume
free_matching free volumes for the claims of one class
matching      existing volumes for unbound claims, prebound ones too
provisioning  whether volumes can be provisioned, with `capacity` for how much is left
scoring       preference for nodes by the storage left there (behind a gate)
assume_cache  volumes and claims with decisions that are not written yet
binding       reserving, writing and waiting
hints         which events may help
"""

from kubestow.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
