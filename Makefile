.PHONY: demo test check bench clean

demo:   ## compare four policies on traffic made on the spot, and write a report
	@scripts/demo

test:   ## everything: format, lint, types, imports, all tests
	@scripts/test

check:  ## format, lint, types, imports
	@scripts/check

bench:  ## the simulator's own speed
	@scripts/bench

clean:
	rm -rf .venv .cache out build .mypy_cache .pytest_cache .ruff_cache
