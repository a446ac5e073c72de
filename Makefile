.PHONY: demo test check bench parity clean

demo:   ## compare four policies on traffic made on the spot, and write a report
	@scripts/demo

test:   ## everything: format, lint, types, imports, all tests, and the comparison with vLLM
	@scripts/test

check:  ## format, lint, types, imports
	@scripts/check

parity: ## our engine against the schedulers of three vLLM versions, 20,000 steps a case
	@scripts/parity

bench:  ## the simulator's own speed
	@scripts/bench

clean:
	rm -rf .venv .venv-vllm* .cache out build .mypy_cache .pytest_cache .ruff_cache
