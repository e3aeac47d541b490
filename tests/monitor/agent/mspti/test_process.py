"""What needs a process of its own: where the library is found, the interpreter's lock, fork and the process's end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from activity_library import build, built

TESTS = Path(__file__).parents[2]
BEGIN = f"""
import os, sys, threading, time
sys.path.insert(0, {str(TESTS)!r})
import activity_library
from npuscope.monitor.activity.kinds import Kind
from npuscope.monitor.activity.strings import Strings
from npuscope.monitor.agent.sources.mspti import MsptiSource
from npuscope.monitor.agent.sources.source import Unavailable
batches = []
source = MsptiSource()
def start():
    source.start(frozenset(Kind), Strings(), batches.append)
def total():
    return sum(len(batch) for batch in batches)
"""


def run(script: str, **environment: str) -> str:
    """What a script prints; nothing goes to its standard error, and it ends with 0."""
    gone = ("LD_LIBRARY_PATH", "LD_PRELOAD", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in gone}
    words = [sys.executable, "-c", BEGIN + script]
    done = subprocess.run(words, env=kept | environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


FOUND = """
try:
    start()
    print(source._run.process.library.path)
except Unavailable as error:
    print(error)
"""


def test_no_library() -> None:
    assert run(FOUND) == (
        "no libmspti.so: it is not loaded, nor in LD_LIBRARY_PATH, $ASCEND_HOME_PATH/lib64 or"
        " $ASCEND_TOOLKIT_HOME/lib64; source the CANN toolkit's set_env.sh before the job\n"
    )


@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "LD_PRELOAD"])
def test_where_the_library_is_found(variable: str, tmp_path: Path) -> None:
    folder = tmp_path / "lib64"
    folder.mkdir()
    library = build(folder)
    value = {"LD_LIBRARY_PATH": f"/nowhere:{folder}", "LD_PRELOAD": str(library)}.get(variable, str(tmp_path))
    assert run(FOUND, **{variable: value}) == f"{library}\n"


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libmspti.so").write_text("not a library")
    said = run(FOUND, LD_LIBRARY_PATH=str(tmp_path))
    assert said.startswith(f"{tmp_path}/libmspti.so cannot be loaded: ")
    assert said.count("\n") == 1


def test_a_library_without_the_functions(tmp_path: Path) -> None:
    (tmp_path / "old.c").write_text("int msptiSubscribe(void) { return 0; }\n")
    build(tmp_path, tmp_path / "old.c")
    said = run(FOUND, LD_LIBRARY_PATH=str(tmp_path))
    assert "has no function msptiUnsubscribe: it is not a version" in said


def test_a_thread_that_holds_the_interpreter_may_record_at_any_time() -> None:
    """The library asks for and returns buffers under the lock that recording needs: a callback that had to wait for
    the interpreter would wait for ever."""
    script = """
library = activity_library.Activities(activity_library.built())
held = activity_library.Activities(activity_library.built(), hold=True)
start()
recording = [library.start([2], 0, 2_000_000) for _ in range(2)]
flushing = threading.Thread(target=lambda: [source.flush() for _ in range(50)])
flushing.start()
for i in range(4000):
    held.emit([2], 500 * i, 500)
for thread in recording:
    library.join(thread)
flushing.join()
source.stop()
print(total() + library.c.fake_dropped())
"""
    assert run(script, LD_LIBRARY_PATH=str(built().parent)) == "6000000\n"


def test_a_process_ends_while_the_library_records() -> None:
    script = """
library = activity_library.Activities(activity_library.built())
start()
library.start([2, 3, 9], 0, 1 << 40)
while not batches:
    time.sleep(0.01)
print("ends")
"""
    assert run(script, LD_LIBRARY_PATH=str(built().parent)) == "ends\n"


def test_a_child_of_fork_has_nothing_to_stop_and_harms_nothing() -> None:
    script = """
library = activity_library.Activities(activity_library.built())
start()
library.emit([2], 0, 10)
child = os.fork()
if not child:
    source.change(frozenset({Kind.API}))
    source.flush()
    source.stop()
    os._exit(3 if source.losses else 0)
assert os.waitpid(child, 0)[1] == 0
library.emit([2], 10, 10)
source.stop()
print(total())
"""
    assert run(script, LD_LIBRARY_PATH=str(built().parent)) == "20\n"


def test_starting_loads_neither_numba_nor_torch() -> None:
    script = 'start(); print(sorted({"numba", "torch", "pyarrow", "click", "rich"} & sys.modules.keys()))'
    assert run(script, LD_LIBRARY_PATH=str(built().parent)) == "[]\n"
