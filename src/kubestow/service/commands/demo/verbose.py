"""`kubestow demo --verbose`: what happens inside a scheduler, line by line, in virtual time."""

import asyncio

from kubestow.editions.edition import Edition
from kubestow.service.output import stdout
from kubestow.simulator.virtual_time import VirtualClock, run_in_virtual_time
from kubestow.simulator.walk import walk


def tell_demo(edition: Edition, speed: float | None) -> None:
    """Print the story of that edition, at this many virtual seconds per real one."""
    run_in_virtual_time(_tell(edition), speed=speed or None)


async def _tell(edition: Edition) -> None:
    clock = VirtualClock(asyncio.get_running_loop())
    if edition.is_modern:
        await walk(_say, clock)
        return
    # Imported here, like every other edition: only when it is to run.
    from kubestow.editions.walking import walk_edition

    await walk_edition(edition, _say, clock)


def _say(now_s: float, subject: str, text: str) -> None:
    style = "bold" if subject == "cluster" else "dim" if subject == "cache" else ""
    stdout().print(f"{now_s:5.1f}s  {subject:<9} {text}", style=style, markup=False)
