"""One module per command, each with a click command called `command`; loaded only when it is asked for."""
