"""The charts as plain data, one kind a file: what a page draws and what `visualize_data.bin` holds."""
