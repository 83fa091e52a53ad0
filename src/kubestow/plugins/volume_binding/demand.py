"""What a claim requires of a volume (spec 07 §2.5)."""

from typing import Final, NamedTuple

from kubestow.api.labels import EVERYTHING, Selector, SelectorError, parse_label_selector
from kubestow.api.quantity import Quantity
from kubestow.api.storage import PersistentVolume, PersistentVolumeClaim
from kubestow.api.volume_claims import offered_storage, requested_storage
from kubestow.errors import PluginError

FILESYSTEM: Final = "Filesystem"


class Form(NamedTuple):
    """What a volume is, besides its size, its labels and the nodes that reach it."""

    access_modes: tuple[str, ...]
    volume_mode: str
    attributes_class: str

    @classmethod
    def of(cls, volume: PersistentVolume) -> "Form":
        spec = volume.spec
        return cls(
            spec.access_modes,
            spec.volume_mode or FILESYSTEM,
            spec.volume_attributes_class_name or "",
        )


class Kind(NamedTuple):
    """What a claim requires of a free volume of its class, besides the size."""

    form: Form
    selector: Selector

    def suits_prebound(self, form: Form) -> bool:
        """Whether a volume that names the claim has the right form: access modes do not matter."""
        mine = self.form
        return mine.volume_mode == form.volume_mode and (
            mine.attributes_class == form.attributes_class
        )

    def suits(self, form: Form) -> bool:
        """Whether a free volume has the right form."""
        return self.suits_prebound(form) and all(
            mode in form.access_modes for mode in self.form.access_modes
        )


class ClaimDemand(NamedTuple):
    """What a claim requires of a free volume of its class; equal for claims of one workload."""

    requested: Quantity
    kind: Kind

    @classmethod
    def of(cls, claim: PersistentVolumeClaim) -> "ClaimDemand":
        """Raises PluginError if the claim's selector does not parse."""
        spec = claim.spec
        form = Form(
            spec.access_modes,
            spec.volume_mode or FILESYSTEM,
            spec.volume_attributes_class_name or "",
        )
        return cls(requested_storage(claim), Kind(form, _selector_of(claim)))

    def suits_prebound(self, volume: PersistentVolume) -> bool:
        """Whether a volume that names the claim can be used; neither labels nor modes matter."""
        is_enough = offered_storage(volume) >= self.requested
        return is_enough and self.kind.suits_prebound(Form.of(volume))

    def suits(self, volume: PersistentVolume) -> bool:
        """Whether a free volume of the claim's class meets all requirements."""
        return (
            offered_storage(volume) >= self.requested
            and self.kind.suits(Form.of(volume))
            and self.kind.selector.matches(volume.metadata.labels)
        )


def _selector_of(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return parse_label_selector(claim.spec.selector)
    except SelectorError as error:
        path = f"{claim.metadata.namespace}/{claim.metadata.name}"
        raise PluginError(
            f"error creating internal label selector for claim: {path}: {error}"
        ) from error
