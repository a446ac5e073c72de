"""ProServe, arXiv 2512.12928: the part of its evaluation that is about one engine, run again."""
