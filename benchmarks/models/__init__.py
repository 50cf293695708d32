"""Models that other tools have counted, written in fencepost's language."""
