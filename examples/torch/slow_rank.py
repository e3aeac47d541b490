"""Finds the slow one among the processes of a training job: an agent in each, one command, one analysis.

    python slow_rank.py

Everything happens in a folder of its own and on a free port, and everything is ended and removed at the end.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from processes import Trouble, dyno, listening, registered, show, started, tell_story, until

RANKS, SLOW = 3, 1
SECONDS = 8
HERE = Path(__file__).resolve().parent


def slow_rank(folder: Path) -> None:
    """The whole story."""
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"  # torchrun lies beside Python
    ours = {"NPUSCOPE_IPC_DIR": str(folder), "MSMONITOR_LOG_PATH": str(folder), "OMP_NUM_THREADS": "1", "PATH": path}
    environment = os.environ | ours
    records = folder / "records"
    with contextlib.ExitStack() as processes:

        def start(words: list[str], name: str) -> subprocess.Popen[bytes]:
            return processes.enter_context(started(words, environment, folder / name))

        launch = ["torchrun", "--nproc-per-node", str(RANKS), "rank_loop.py", "--slow", str(SLOW)]
        show(f"A job of {RANKS} ranks, each with an agent; rank {SLOW} is made slow:", "npuscope monitor daemon &")
        print(f"  $ npuscope monitor run {' '.join(launch)} &", flush=True)
        daemon = start(["-m", "npuscope", "monitor", "daemon", "--port", "0", "--ipc", "home"], "daemon.log")
        launch[launch.index("rank_loop.py")] = str(HERE / "rank_loop.py")
        job = start(["-m", "npuscope", "monitor", "run", *launch, "--seconds", "300"], "job.log")
        port = listening(daemon, folder / "daemon.log")

        def all_train() -> bool:
            log = (folder / "job.log").read_text()
            if job.poll() is not None:
                raise Trouble(f"the job has ended: {log.strip()[-500:]}")
            return len(registered(environment, port)) == RANKS and log.count("loss") >= RANKS

        until(all_train, "the ranks did not train")
        kinds = "Marker,API,Communication"
        options = ["--npu-monitor-start", "--duration", str(SECONDS), "--mspti-activity-kind", kinds]
        options += ["--log-file", str(records)]
        show(
            f"{SECONDS} seconds of its operators and collectives, while it runs:",
            f"dyno npu-monitor {' '.join(options)}",
        )
        dyno(environment, port, "npu-monitor", *options)
        until(lambda: len(list(records.glob("*.db"))) == RANKS, "the ranks wrote nothing")
        until(lambda: "expired" in dyno(environment, port, "status"), "the monitor did not end")
        show("Who is slow?", f"npuscope cluster {records}")
        subprocess.run([sys.executable, "-m", "npuscope", "cluster", str(records)], env=environment, check=True)


if __name__ == "__main__":
    sys.exit(tell_story("slow rank", slow_rank))
