"""Speed and memory, measured side by side in one run and printed as tables. `make bench`."""
