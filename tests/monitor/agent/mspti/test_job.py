"""A job with the library preloaded, an agent in it, a daemon, and `dyno npu-monitor`: what sqlite3 finds at the end."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from activity_library import built
from agent import jobs
from daemon_process import Daemon
from training import running, wait_until

TESTS = Path(__file__).parents[2]
JOB = f"""
import sys, time
sys.path.insert(0, {str(TESTS)!r})
import activity_library
from npuscope.monitor import agent
agent.start()
library = activity_library.Activities(sys.argv[1])
end, first = time.time() + 240, 0
while time.time() < end:
    library.c.fake_base(time.time_ns() - 1000 * first)  # record `first` starts now
    library.emit([2, 3, 9, 7], first, 4)
    first += 4
    time.sleep(0.005)
"""


def test_a_database_of_what_the_library_recorded(agent_daemon: Daemon, folder: Path) -> None:
    out = folder / "out"
    words = [*jobs.words(folder, JOB), str(built())]
    with running(folder, words, jobs.agents(folder, LD_PRELOAD=str(built())), unharmed=False) as job:
        jobs.known(agent_daemon, [job.pid])
        kinds = ["--mspti-activity-kind", "Kernel,API,Communication", "--filter", "Kernel:name_1;API:name_3"]
        jobs.monitor(agent_daemon, "--npu-monitor-start", *kinds, "--duration", "2", "--log-file", str(out),
                     "--export-type", "DB")  # fmt: skip
        wait_until(lambda: "its time is over" in jobs.log(folder, job.pid), 120, jobs.log(folder, job.pid))
    log = jobs.log(folder, job.pid)
    assert "mspti gives nothing here" not in log
    assert "lost" not in log
    [file] = out.rglob("msmonitor_*.db")
    with closing(sqlite3.connect(file)) as database:
        kernels = database.execute("""
            select names.value, types.value, deviceId, streamId, endNs - startNs from COMPUTE_TASK_INFO
            join TASK on COMPUTE_TASK_INFO.globalTaskId = TASK.globalTaskId
            join STRING_IDS names on names.id = COMPUTE_TASK_INFO.name
            join STRING_IDS types on types.id = TASK.taskType order by startNs
        """).fetchall()
        calls = database.execute("""
            select value, type, connectionId, globalTid from CANN_API join STRING_IDS on id = name
        """).fetchall()
        [algorithms] = database.execute("select count(*) from STRING_IDS where value = 'HD'").fetchone()
    # Kernels are the records of which the number divides by 4, calls those that follow them.
    assert kernels
    for name, kind, device, stream, took in kernels:
        number = int(name.removeprefix("name_"))  # of the record, modulo 100
        assert number % 4 == 0
        assert name.startswith("name_1")
        assert kind == "KERNEL_AICORE"
        assert device % 4 == 0
        assert 10 <= took < 17
        assert (stream in (0, 1, 2)) == bool(number % 5)
    assert calls
    for name, layer, connection, thread in calls:
        record = connection - (1 << 40)
        assert record % 4 == 1
        assert name == f"name_{(record + 3) % 100}"
        assert name.startswith("name_3")
        assert layer == 10000
        assert thread == (4_000_000_000 + record % 2) << 32 | 100 + record % 4 or thread < 0
    assert algorithms == 0  # collectives have one, and the filter does not name them
