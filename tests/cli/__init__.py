"""The real command as a process of its own, with real parts."""
