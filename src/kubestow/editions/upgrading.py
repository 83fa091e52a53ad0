"""What differs between two editions that a control plane goes from and to."""

from kubestow.editions.edition import Edition, Version
from kubestow.editions.noticed import NoticedChanges
from kubestow.errors import InputError


def changes_between(before: Edition, after: Edition) -> NoticedChanges:
    """What users notice, in either direction; InputError if there is no list for these two."""
    if {before.version, after.version} == {Version.V1_36, Version.V1_37}:
        from kubestow.editions.v1_37.noticed import NOTICED_V137

        return NOTICED_V137
    if before is after:
        raise InputError(
            f"--from and --to are both {before.version}; an upgrade goes from v1.36 to v1.37, or "
            "back"
        )
    raise InputError(
        f"there is no list of changes between {before.version} and {after.version}, only between "
        "v1.36 and v1.37; kubestow compare runs any two versions"
    )
