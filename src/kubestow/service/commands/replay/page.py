"""`kubestow replay FILE --page`: a recording on the page.

It is played once, as fast as possible unless the page asks for another speed. What was replaced is
kept, so that the slider goes back through it; after the end time stands still.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from kubestow.editions.edition import ModernVersion
from kubestow.errors import DecodeError, InputError
from kubestow.explain.history import AttemptHistory
from kubestow.logs import silenced
from kubestow.recording.file import RecordingReader
from kubestow.recording.format import FOREIGN_ORIGIN
from kubestow.service.commands.demo.output import Output, end_on_signals, exit_code
from kubestow.service.commands.demo.parts import announce_page
from kubestow.service.commands.replay.file import ReplaySetup, replay_setup
from kubestow.service.loops import LoopThread
from kubestow.service.output import stdout
from kubestow.service.page import PageParts, local_page, page_metrics
from kubestow.simulator.live.time_control import PacedTime, TimeActions
from kubestow.simulator.paced_time import UNLIMITED, PacedLoop
from kubestow.simulator.replay.replay import RecordedAnswers, Replay
from kubestow.web.past import RECORDED_ROWS_MAX
from kubestow.web.protocol import ClockState
from kubestow.web.suggest import Suggester


def show_recording(
    path: Path,
    config_file: Path | None,
    plugins: Sequence[str] = (),
    compatibility: ModernVersion | None = None,
    *,
    port: int,
    opens: bool,
) -> int:
    """Show it until interrupted; the exit code. InputError if the file cannot be shown."""
    reader = RecordingReader(path)
    if reader.header.origin == FOREIGN_ORIGIN:
        raise InputError(
            f"{path}: recorded from another scheduler, it has changes and no attempts; leave out "
            "--page to compare its decisions"
        )
    setup = replay_setup(reader, config_file, plugins, compatibility)
    # What the scheduler logs was logged when it was recorded.
    with silenced(), asyncio.Runner(loop_factory=lambda: PacedLoop(UNLIMITED)) as runner:
        return runner.run(_show(Output(stdout()), reader, setup, port=port, opens=opens))


async def _show(
    output: Output, reader: RecordingReader, setup: ReplaySetup, *, port: int, opens: bool
) -> int:
    ended = asyncio.Event()
    signals = end_on_signals(ended.set)
    time = PacedTime(cast(PacedLoop, asyncio.get_running_loop()))
    replay = Replay(
        reader.header,
        setup.config,
        setup.gates,
        setup.registry,
        RecordedAnswers.of(reader),
        is_other=setup.is_other,
        metrics=page_metrics(setup.gates),
    )
    with closing(LoopThread("page")) as thread:
        async with local_page(_parts(replay, setup, time), thread, port=port) as page:
            time.on_change = page.follower.touch
            announce_page(output, page.address, opens=opens)
            playing = asyncio.create_task(_play(replay, reader, time, output.print))
            playing.add_done_callback(lambda task: _end_if_failed(task, ended))
            await ended.wait()
            playing.cancel()
            (problem,) = await asyncio.gather(playing, return_exceptions=True)
            if isinstance(problem, DecodeError):
                raise InputError(f"{reader.path} is damaged: {problem}") from problem
            if isinstance(problem, Exception):
                raise problem
    return exit_code(signals)


def _end_if_failed(playing: "asyncio.Task[None]", ended: asyncio.Event) -> None:
    if not playing.cancelled() and playing.exception() is not None:
        ended.set()


async def _play(
    replay: Replay, reader: RecordingReader, time: PacedTime, say: Callable[[str], None]
) -> None:
    report = await replay.run(reader)
    time.pause()
    if report.ended:
        say(f"The scheduler ended at {report.ended_s:,.3f}s: {report.ended}")
    say(
        f"{report.attempts:,} decisions in {report.duration_s:,.1f} s of recorded time are on the "
        f"page, {report.differing:,} differ from the recording. Ctrl-C ends it."
    )


def _parts(replay: Replay, setup: ReplaySetup, time: PacedTime) -> PageParts:
    clock, scheduler = replay.clock, replay.scheduler

    def clock_state() -> ClockState:
        now_ms = clock.now_ns() // 1_000_000
        return ClockState(time=now_ms, speed=time.speed, paused=time.is_paused, can_change=True)

    return PageParts(
        mode="recording",
        scheduler=scheduler,
        listeners=replay.listeners,
        config=setup.config,
        gates=setup.gates,
        clock=clock,
        history=AttemptHistory(clock),  # nothing was decided before the page
        suggest=Suggester(
            scheduler, setup.config, replay.client, clock, setup.registry, setup.gates
        ),
        time=clock_state,
        actions=TimeActions(time),
        past_rows=RECORDED_ROWS_MAX,
    )
