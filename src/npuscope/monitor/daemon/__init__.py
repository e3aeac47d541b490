"""The daemon: who is registered, what is asked of whom, and the sockets between them."""
