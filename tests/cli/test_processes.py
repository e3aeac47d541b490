"""Programs, their children, and the signals that end them."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Run = Callable[..., "CompletedProcess[str]"]
Write = Callable[..., Path]

WAITS = """
launch(128)
print("ready", flush=True)
import time
time.sleep(60)
"""


def started(process: Any) -> None:
    """Wait until the script says that its first launch is over."""
    assert process.stdout.readline() == "ready\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_script_that_a_signal_ends(npuscope: Run, script: Write, number: signal.Signals) -> None:
    """Findings so far, marked partial; exit code 128 + n."""
    done = npuscope("check", script(f"launch(128)\nlaunch(64)\nos.kill(os.getpid(), {int(number)})\n"))
    assert done.returncode == 128 + number
    assert "[illegal-write]" in done.stderr
    assert f"Partial: the program was ended by signal {int(number)} ({signal.strsignal(number)})." in done.stderr
    assert "2 launches" in done.stderr


def test_the_code_for_findings_that_was_asked_for_wins(npuscope: Run, script: Write) -> None:
    """--error-exitcode by number, also when a signal ended the script."""
    path = script("launch(128)\nos.kill(os.getpid(), 9)\n")
    assert npuscope("check", "--error-exitcode", "3", path).returncode == 3


def test_a_signal_to_the_command_is_passed_on(command: Callable[..., Any], script: Write) -> None:
    """SIGTERM, as a batch system sends it: the script ends, and the report is there."""
    process = command("check", script(WAITS))
    started(process)
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert "[illegal-write]" in err and "Partial: the program was ended by signal 15" in err


def test_ctrl_c_once(command: Callable[..., Any], script: Write) -> None:
    """A signal to npuscope alone reaches the script; what was seen is reported, marked partial; 130."""
    process = command("check", script(WAITS))
    started(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "[illegal-write]" in err
    assert err.splitlines()[-1].endswith("Partial: interrupted by Ctrl-C.")


def test_ctrl_c_twice(command: Callable[..., Any], script: Write) -> None:
    """A script that does not end: the second one quits at once, without a report."""
    stubborn = WAITS.replace("time.sleep(60)", "signal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)").replace(
        'print("ready", flush=True)\nimport time', 'import time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint("ready", flush=True)'
    )
    process = command("check", script(stubborn))
    started(process)
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "illegal" not in err


def test_ctrl_c_on_a_terminal(script: Write, tmp_path: Path) -> None:
    """The terminal interrupts the script and npuscope; the script may go on, and is not interrupted twice."""
    text = """
    import time
    signal.signal(signal.SIGINT, signal.default_int_handler)  # pyasc has put its own there, which exits
    interrupts = 0
    print("ready", flush=True)
    while True:
        try:
            time.sleep(1.5 if interrupts else 60)
            break
        except KeyboardInterrupt:
            interrupts += 1
    launch(64)
    print("interrupts:", interrupts, "tty:", sys.stdin.isatty(), sys.stdout.isatty(), flush=True)
    """
    path = script(text)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "npuscope", "check", str(path)])
    seen = b""
    pressed = False
    while True:
        if not select.select([terminal], [], [], 60)[0]:
            break
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if b"ready" in seen and not pressed:
            pressed = True
            time.sleep(0.5)  # it enters the block in which it is prepared
            os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    assert b"interrupts: 1 tty: True True" in seen
    assert b"Partial: interrupted by Ctrl-C." in seen
    assert os.waitstatus_to_exitcode(status) == 0


def test_standard_input_is_the_scripts(command: Callable[..., Any], script: Write) -> None:
    """A filter stays a filter."""
    process = command("check", script("print(sys.stdin.read().upper())\n"), stdin=-1)
    out, _ = process.communicate("hello", timeout=60)
    assert out == "HELLO\n"


def test_children_of_a_checked_script(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """By subprocess and by fork, one of them killed; all are in one report, and in one trace that gives it again."""
    script("launch(128)\n", "child.py")
    path = script(
        """
        import multiprocessing
        if __name__ == "__main__":
            launch(64)
            subprocess.run([sys.executable, "child.py"], check=True)
            forked = multiprocessing.get_context("fork").Process(target=launch_other, args=(128,))
            forked.start()
            forked.join()
            killed = "import script; script.launch(128); import os; os.kill(os.getpid(), 9)"
            assert subprocess.run([sys.executable, "-c", killed]).returncode == -9
        """
    )
    done = npuscope("check", "--save", "all.trace", path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert "memory: 3 errors, 0 warnings" in lines
    assert lines[-1].startswith("4 launches, ")
    assert "  2 times on AIV 0. Launch copy[1]" in done.stderr or "Once on AIV 0" in done.stderr
    replayed = npuscope("check", "all.trace")
    assert (replayed.returncode, replayed.stderr) == (1, done.stderr)


def test_a_process_that_goes_away_during_a_launch(npuscope: Run, script: Write) -> None:
    """The kernel that it did not finish is named."""
    path = script(
        """
        def die(line, *rest, **named): os.kill(os.getpid(), 9)
        import npuscope.npu.machine as machine
        machine.Machine.run = die
        launch(64)
        """
    )
    done = npuscope("check", path)
    assert done.returncode == 137
    assert "clean" not in done.stderr
    assert "a process went away while copy ran" in done.stderr


def test_a_python_without_npuscope(npuscope: Run, script: Write, tmp_path: Path) -> None:
    """Its kernels run unchecked, which is said; nothing is called clean."""
    (tmp_path / "asc.py").write_text("print('another asc')\n")
    hidden = "import sys; sys.modules['npuscope'] = None; import asc"
    path = tmp_path / "starts.py"
    path.write_text(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {hidden!r}], check=True)\n")
    done = npuscope("check", path)
    assert "another asc" in done.stdout
    assert "Partial: kernels of a Python without npuscope were not checked: " in done.stderr


def test_sitecustomize_of_the_user_still_runs(npuscope: Run, tmp_path: Path) -> None:
    """The hook makes way for the one that it hides."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'yes'\n")
    path = tmp_path / "starts.py"
    path.write_text(
        "import os, subprocess, sys\n"
        "os.environ['PYTHONPATH'] += os.pathsep + 'own'\n"
        "subprocess.run([sys.executable, '-c', 'import os, sys; print(os.environ.get(\"OWN\"), "
        "[p for p in sys.path if p.endswith(\"hook\")])'], check=True)\n"
    )
    assert npuscope("check", path).stdout == "yes []\n"
