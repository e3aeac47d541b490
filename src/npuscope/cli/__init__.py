"""The commands. The only room that prints and exits."""
