"""A simulated Ascend device: chips, memories, instructions, synchronisation."""
