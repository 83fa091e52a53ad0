"""Pages of flags show no password."""

import numpy as np

from kubestow.service.serving.pages import flagz_document, flagz_text

FLAGS = {"v": "2", "master": "https://me:hunter2@host:6443"}


def test_flags_are_shown_without_passwords() -> None:
    assert flagz_document(FLAGS)["flags"] == {"master": "https://REDACTED@host:6443", "v": "2"}
    text = flagz_text(FLAGS, np.random.default_rng(0))
    assert "https://REDACTED@host:6443\n" in text
    assert "hunter2" not in text
