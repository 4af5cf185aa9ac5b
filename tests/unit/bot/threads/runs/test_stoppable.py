"""The runs of this process that can be stopped."""

from bot.threads.runs.following import StoppableRuns


def test_who_lost_the_thread_takes_nothing_from_who_has_it() -> None:
    runs = StoppableRuns()
    with runs.run("T1"):
        newer = runs.run("T1")
        running = newer.__enter__()
    assert runs.is_running("T1")
    runs.stop("T1")
    assert running.is_stopped
    newer.__exit__(None, None, None)
    assert not runs.is_running("T1")
