#!/usr/bin/env python3
"""Prints every scalar of the TensorBoard event files in a folder, as the `tensorboard` package reads them.

usage: read_events.py FOLDER
One line per scalar: tag, step, value, time. Uses the installed package, else a virtual environment that it
makes once in the user's cache. Exits 77 with a sentence where the package cannot be had.
"""

import os
import pathlib
import subprocess
import sys
import venv

UNAVAILABLE = 77


def environment():
    """Python of an environment that has tensorboard, or None."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "rhea" / "tensorboard-venv"
    python = folder / "bin" / "python3"
    ready = folder / "ready"
    if ready.exists():
        return python
    try:
        venv.create(folder, with_pip=True, clear=True)
        # tensorboard 2.x still imports pkg_resources, which setuptools dropped in 81.
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "10",
             "tensorboard", "setuptools<81"],
            check=True, stdout=sys.stderr, stderr=sys.stderr)
    except (subprocess.CalledProcessError, OSError):
        return None
    ready.touch()
    return python


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        python = None if os.environ.get("RHEA_READ_EVENTS_NESTED") else environment()
        if python is None:
            print("the Python package `tensorboard` is not installed and could not be fetched")
            sys.exit(UNAVAILABLE)
        os.environ["RHEA_READ_EVENTS_NESTED"] = "1"
        os.execv(python, [str(python), __file__, sys.argv[1]])
    events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
    events.Reload()
    for tag in sorted(events.Tags()["scalars"]):
        for item in events.Scalars(tag):
            print(tag, item.step, item.value, item.wall_time)


main()
