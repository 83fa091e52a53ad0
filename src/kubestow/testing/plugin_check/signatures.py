"""Whether the methods of a plugin can be called as the framework calls them."""

import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

from kubestow.framework import plugin as protocols

_PROTOCOLS: Final = (
    protocols.EventPlugin,
    protocols.PreEnqueuePlugin,
    protocols.QueueSortPlugin,
    protocols.PreFilterPlugin,
    protocols.PreFilterExtensions,
    protocols.FilterPlugin,
    protocols.PostFilterPlugin,
    protocols.PreScorePlugin,
    protocols.ScorePlugin,
    protocols.NormalizePlugin,
    protocols.ReservePlugin,
    protocols.PermitPlugin,
    protocols.PreBindPlugin,
    protocols.BindPlugin,
    protocols.PostBindPlugin,
)
# How close a name has to be to that of a method to be taken for a misspelt one.
_CLOSE: Final = 0.85


def _declared() -> dict[str, Any]:
    return {
        name: method
        for protocol in _PROTOCOLS
        for name, method in vars(protocol).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


METHODS: Final[dict[str, Any]] = _declared()


def methods_of(plugin: object) -> tuple[str, ...]:
    """The methods of extension points that the plugin has, in the order they are called."""
    return tuple(name for name in METHODS if hasattr(plugin, name))


def signature_faults(plugin: object) -> Iterator[str]:
    for name in methods_of(plugin):
        yield from _method_faults(name, getattr(plugin, name))
    for name in dir(type(plugin)):
        if name.startswith("_") or name in METHODS or not callable(getattr(plugin, name, None)):
            continue
        close = get_close_matches(name, METHODS, n=1, cutoff=_CLOSE)
        if close and not hasattr(plugin, close[0]):
            yield f'"{name}" is never called; is "{close[0]}" meant?'


def _method_faults(name: str, method: Any) -> Iterator[str]:
    wanted = [*inspect.signature(METHODS[name]).parameters][1:]
    try:
        inspect.signature(method).bind(*wanted)
    except TypeError as error:
        yield f"{name} is called with ({', '.join(wanted)}): {error}"
    except ValueError:
        pass  # Some built-in functions have no signature; calling them shows the fault.
    is_async = inspect.iscoroutinefunction(method)
    if is_async and not inspect.iscoroutinefunction(METHODS[name]):
        yield f"{name} is declared with async def, but it is called without await"
