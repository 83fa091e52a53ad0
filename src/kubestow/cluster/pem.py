"""Loads a certificate with its key into a TLS context, without leaving the key on a disk.

The standard library reads both from files only. Where the system has files in memory they are used,
so that this also works with a read-only root file system; elsewhere a file that only this user can
read is written and removed at once.
"""

import os
import ssl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use this certificate (and the rest of its chain) and key, both PEM.

    Raises ssl.SSLError if they cannot be read or do not match, OSError if no file can be written.
    """
    # A file can hold both.
    with _file_with(certificate + b"\n" + key + b"\n") as path:
        context.load_cert_chain(path)


@contextmanager
def _file_with(content: bytes) -> Generator[str, None, None]:
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("pem", os.MFD_CLOEXEC), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    handle, name = tempfile.mkstemp(suffix=".pem")  # readable by this user alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield name
    finally:
        Path(name).unlink()
