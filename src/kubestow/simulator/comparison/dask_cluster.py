"""Tasks on a Dask cluster that exists already, through the client of `distributed`.

The workers need the same version of kubestow and the modules of plugins; the input is sent to them
once and passed on among them by Dask.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from kubestow import __version__
from kubestow.errors import InputError
from kubestow.simulator.comparison.pool import Finished
from kubestow.simulator.comparison.work import run_task

SCHEME: Final = "dask://"
CONNECT_S: Final = 10


class DaskRunner:
    """Use it in a `with` block, which closes the connection; the cluster goes on."""

    def __init__(self, address: str, material: bytes) -> None:
        """Raises InputError if the cluster cannot be used."""
        self._address = address
        self._client: Any = _connect(address)
        try:
            _check_workers(self._client, address)
            self._material = self._client.scatter(material, hash=False)
        except BaseException:
            self._client.close()
            raise

    def __enter__(self) -> "DaskRunner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def run(self, tasks: Sequence[bytes]) -> Generator[Finished, None, None]:
        from distributed import as_completed

        # Not `pure`: two sweeps of one process must not share what became of a task.
        futures = [
            self._client.submit(run_task, self._material, task, pure=False) for task in tasks
        ]
        indices = {future.key: index for index, future in enumerate(futures)}
        try:
            for future in as_completed(futures, loop=self._client.loop, raise_errors=False):
                index = indices[future.key]
                error = future.exception()
                yield (
                    Finished(index, future.result())
                    if error is None
                    else Finished(
                        index, b"", f"on {self._address}: {type(error).__name__}: {error}"
                    )
                )
        finally:
            # A connection that is lost cannot cancel anything, and there is nothing to cancel.
            with suppress(Exception):
                self._client.cancel(futures)


def worker_version() -> str:
    """Runs on each worker."""
    return __version__


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            '--on dask:// needs the package "distributed": install kubestow[dask]'
        ) from error
    if not address.startswith(SCHEME) or not address.removeprefix(SCHEME):
        raise InputError(f'--on is "{address}", expected {SCHEME}HOST:PORT')
    try:
        return Client(
            f"tcp://{address.removeprefix(SCHEME)}", timeout=CONNECT_S, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot connect to the Dask scheduler at {address}: {error}; is it running, and is "
            "this the port of the scheduler, not of its dashboard?"
        ) from error


def _check_workers(client: Any, address: str) -> None:
    try:
        versions: dict[str, str] = client.run(worker_version)
    except Exception as error:  # Whatever the workers raise, such as a missing module.
        raise InputError(
            f"the workers of {address} cannot run kubestow: {type(error).__name__}: {error}; "
            f"install kubestow {__version__} and the modules of your plugins on each"
        ) from error
    if not versions:
        raise InputError(f"the Dask cluster at {address} has no workers; start at least one")
    for worker, version in sorted(versions.items()):
        if version != __version__:
            raise InputError(
                f"the Dask worker {worker} has kubestow {version}, this is {__version__}: results "
                "of both could differ; install the same version"
            )
