"""Who is slow: what the files of many ranks say together. Each file becomes small arrays first, wherever it lies."""
