"""The verbs of the `penstock` command, one module per noun. Heavy imports stay inside the functions that need them."""
