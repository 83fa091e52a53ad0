"""Identifiers that look random and can be repeated."""

import uuid

from kubestow.apiserver.identity import IdentitySource


def test_uids_are_distinct_version_4_uuids():
    source = IdentitySource()
    uids = [source.next_uid() for _ in range(1000)]
    assert len(set(uids)) == 1000
    assert all(uuid.UUID(uid).version == 4 for uid in uids)


def test_a_seed_fixes_the_sequence():
    def drawn(seed: int) -> list[str]:
        source = IdentitySource(seed)
        return [source.next_uid(), source.next_name("a-"), source.next_uid()]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(-3)


def test_generated_names_fit_however_long_the_prefix_is():
    name = IdentitySource().next_name("x" * 80)
    assert len(name) == 63
    assert name.startswith("x" * 58)
