"""The papers' experiments: what to run, the printed numbers beside ours, and whether claims hold."""
