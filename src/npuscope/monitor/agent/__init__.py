"""The part of the monitor that lives inside a training process."""
