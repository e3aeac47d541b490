"""What happened on the device, as columns: instructions, memory accesses, buffers, source locations, launches."""
