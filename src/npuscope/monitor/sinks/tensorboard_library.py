"""What is used of tensorboardX. Its usual writer hands events to a thread that dies at the first full disk, and then
waits for it for ever; these parts write at once and say what is wrong."""

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.summary import scalar

__all__ = ["Event", "EventsWriter", "scalar"]
