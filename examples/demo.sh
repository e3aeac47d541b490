#!/bin/sh
# The demonstration: sh examples/demo.sh FOLDER, where FOLDER holds the environment's programs.
# What compiles for long or mostly waits goes on in the background, and is shown when its turn comes.
set -eu
bin=$1
mkdir -p build
background=
trap 'kill $background 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() {
    printf '\n== %s ==\n\n' "$1"
}

# A check that must find something.
finds() {
    code=0
    "$bin/npuscope" check "$1" || code=$?
    if [ "$code" -ne 1 ]; then
        echo "demo: exit code 1 (findings) expected, got $code" >&2
        exit 1
    fi
}

# What a background process has written, once it has ended; fails as it did.
show() {
    code=0
    wait "$1" || code=$?
    cat "$2"
    [ "$code" -eq 0 ]
}

"$bin/npuscope" profile -o build/profile examples/pyasc/softmax_rows.py > build/profile.txt 2>&1 &
profile=$!
background=$profile

"$bin/npuscope" check examples/pyasc/add_flags.py
say 'Two kernels with a bug each; npuscope finds it and exits with 1. Here a tile is too long:'
finds examples/bugs/add_tail_too_long.py
say 'Here a flag is missing: the vector unit does not wait for a copy.'
finds examples/bugs/missing_flag.py

if "$bin/python" -c 'import torch' 2>/dev/null; then
    "$bin/python" examples/torch/slow_rank.py > build/slow-rank.txt 2>&1 &
    slow=$!
    background="$background $slow"
fi
say 'Where the time of a kernel goes, on which lines, and what to do about it:'
show "$profile" build/profile.txt

if [ -z "${slow:-}" ]; then
    echo 'demo: PyTorch is not installed: what needs running jobs is left out'
    exit
fi
say 'PyTorch jobs are traced while they run, without a change to their code.'
"$bin/python" examples/torch/live_trace.py
say 'The slow one among the ranks of a job is named.'
show "$slow" build/slow-rank.txt
