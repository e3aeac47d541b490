"""What is used of tensorboardX. Its usual writer hands events to a thread that dies at the first full disk, and then
waits for it for ever; these parts write at once and say what is wrong."""

import sys

# The library loads PyTorch where there is one: 200 MiB and seconds that buy a daemon nothing, and a PyTorch in the
# daemon would register with it as a process to be traced. With None in its place the library does without.
_absent = "torch" not in sys.modules
if _absent:
    sys.modules["torch"] = None  # type: ignore[assignment]
try:
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.summary import scalar
finally:
    if _absent:
        del sys.modules["torch"]

__all__ = ["Event", "EventsWriter", "scalar"]
