# One line of meaning per target; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Where scripts/setup-sdk-python puts what checks the Python SDK.
SDK := target/test-tools/sdk/bin
RUFF := ../../$(SDK)/ruff --config pyproject.toml
PYTHON := . ../../templates/python ../../examples/python-file
.PHONY: help run test soak check fix install sdk bench bench-search docs snapshots deny

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# With an example of the workspace, cargo takes the dependencies with the features that `make test` has built them with.
run: ## Build Toolcrib and serve the demo project; prints lines to paste
	cargo build --workspace --bin toolcrib --example writer
	@scripts/demo

test: ## Install what the tests need, then run all of them
	@scripts/setup-tests
	@scripts/setup-conformance
	@scripts/run-tests

soak: ## Run all tests, the long ones at full length
	@scripts/setup-tests
	@scripts/setup-conformance
	@TOOLCRIB_SOAK=1 scripts/run-tests
	@scripts/compare-pii-peers

check: ## Formatting, lints, and whether docs/reference is what the code says
	@scripts/setup-sdk-python
	cd sdk/python && $(RUFF) format --check $(PYTHON)
	cd sdk/python && $(RUFF) check $(PYTHON)
	cd sdk/python && ../../$(SDK)/mypy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace --test it -- reference:: tidy::
	@scripts/setup-sdk-typescript
	npm run check --prefix sdk/typescript

fix: ## Format, and mend what clippy and ruff can mend
	@scripts/setup-sdk-python
	cd sdk/python && $(RUFF) check --fix $(PYTHON)
	cd sdk/python && $(RUFF) format $(PYTHON)
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

install: ## Put the binary into $PREFIX/bin (~/.cargo/bin when PREFIX is not set)
	cargo install --path crates/toolcrib --locked --root "$${PREFIX:-$$HOME/.cargo}"
	@"$${PREFIX:-$$HOME/.cargo}/bin/toolcrib" man --dir "$${PREFIX:-$$HOME/.cargo}/share/man/man1"
	@bin="$${PREFIX:-$$HOME/.cargo}/bin"; echo "toolcrib is in $$bin"; \
	case ":$$PATH:" in *":$$bin:"*) ;; *) echo "warning: $$bin is not on your PATH; add it: export PATH=\"$$bin:\$$PATH\"";; esac

sdk: ## Write both SDKs as packages into target/sdk: a wheel for pip, a tarball for npm
	cargo build --workspace --bin toolcrib --example writer
	@$${CARGO_TARGET_DIR:-target}/debug/toolcrib sdk python "$${CARGO_TARGET_DIR:-target}/sdk"
	@$${CARGO_TARGET_DIR:-target}/debug/toolcrib sdk typescript "$${CARGO_TARGET_DIR:-target}/sdk"

bench: ## Measure against floors and peers in one run, in a release build
	cargo build --release -p toolcrib -p toolcrib-bench
	@$${CARGO_TARGET_DIR:-target}/release/toolcrib-bench

bench-search: ## Measure how well tools are found, beside FastMCP: make bench-search SETS=DIR
	@scripts/bench-search "$(SETS)"

docs: ## Make docs/reference anew from the code
	UPDATE_REFERENCE=1 cargo test -p toolcrib --test it reference

snapshots: ## Write anew what commands say (crates/toolcrib/tests/snapshots); read the diff
	UPDATE_SNAPSHOTS=1 cargo test -p toolcrib --test it snapshots::

deny: ## Check licences, sources and banned crates of the dependencies (needs cargo-deny)
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is missing: cargo install --locked cargo-deny" >&2; exit 1; }
	cargo deny check licenses bans sources
