"""UniBoost, arXiv 2606.18431: its evaluation (§6) and the observations that it starts from, run again."""
