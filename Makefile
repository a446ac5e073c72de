.PHONY: demo test check bench bench-vllm parity live-vllm clean

demo:   ## compare four policies on traffic made on the spot, and write a report
	@scripts/demo

test:   ## everything: format, lint, types, imports, all tests, and the comparison with vLLM
	@scripts/test

check:  ## format, lint, types, imports
	@scripts/check

parity: ## our engine against the schedulers of three vLLM versions, 20,000 steps a case
	@scripts/parity

live-vllm: ## a burst of long and short requests through real vLLM, under its own order and ours
	@scripts/vllm run live

bench:  ## the simulator's own speed
	@scripts/bench

bench-vllm: ## what a policy adds to vLLM's schedule()
	@scripts/vllm run bench --vllm

clean:
	rm -rf .venv .venv-vllm* .cache out build .mypy_cache .pytest_cache .ruff_cache
