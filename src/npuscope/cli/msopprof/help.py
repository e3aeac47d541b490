"""The help of `msopprof`."""

HELP = """\
usage: msprof op [options] <app> [app args]
       msprof op simulator [options] <app> [app args]
       msopprof is the same as msprof op

Runs <app>; the kernels that it or a Python process below it launches are run and timed on a simulated device. All
times are modelled. Options are written --name=value, before <app>.

  --application=CMD          deprecated: the application as one text
  --config=FILE              a kernel object and its test case (JSON); is checked, but cannot be run without a card
  --output=DIR               results go to DIR/OPPROF_{timestamp}_XXX (default ./)
  --kernel-name=NAMES        prefixes of kernel names split by |, * stands for any characters; regex:RE (ours)
  --launch-count=N           keep the first N launches that match, 1 to 5000 (default 1)
  --mstx=on|off              only launches inside ranges of the mstx module; --mstx-include=A|B: of those messages
  --aic-metrics=LIST         what is written, by comma (see below)
  --core-id=0|3              only these cores (op: with TimelineDetail)
  --dump=on|off              also keep the instruction logs in dump/ (op: with TimelineDetail)
  --kill=on|off              end the application when --launch-count launches are there
  --timeout=MINUTES          1 to 2880: end the application then; what it launched is parsed
  --soc-version=CHIP         simulate this chip (default: the one that the script names, else Ascend910B1)
  -h, --help; -v, --version

op:
  --launch-skip-before-match=N  0 to 1000: leave out the first N launches
  --replay-mode=kernel|application|range
                             kernel and range: the L2 cache is empty when a launch begins; application: it is as the
                             launch before left it. One run collects everything, nothing is repeated
  --warm-up=N                0 to 500 runs ahead; the clock is constant here, so with --replay-mode=application only
                             they show, in the L2 cache
  --pipe=LIST (also --instr-timeline-pipe): of cube fixp vector mte1 mte2 mte3 simd simt, by | or , or /; with
                             InstrTimeline
  --custom-input=FILE        names for the time stamps of a kernel (JSON)
  --aic-metrics: Default, PipeUtilization, ArithmeticUtilization, L2Cache, Memory, MemoryL0, MemoryUB,
      ResourceConflictRatio, BasicInfo, Roofline, Occupancy, KernelScale, MemoryDetail, Source, TimelineDetail;
      Ascend950: PipeTimeline, InstrTimeline, PcSampling; ours: basic, full, timeline for several at once

simulator:
  --export=DIR               parse the instruction logs of a vendor simulator in DIR instead of running anything
  --aic-metrics: PipeUtilization (alone: no SET and WAIT), ResourceConflictRatio, PMSampling, OverHead

MSOPT_LOG_LEVEL: 0 debug, 1 info (default), 2 warnings, 3 errors.

Ctrl-C ends the application; what was collected is parsed and saved. A second Ctrl-C ends everything at once.

Exit codes: 0 results were saved (whatever the application's own code); 1 no kernel was launched, none matched or none
could be parsed; 2 an argument that cannot be followed, kernels that cannot be timed or output that cannot be written;
130 after a second Ctrl-C.
"""
