"""Runs as data: what to run, where its result is kept, and many of them side by side."""
