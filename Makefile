# Kiln's chores. `make demo` shows it at work, `make test` checks everything; each builds what it needs by itself.
# The program alone (-p kiln) and the whole workspace compile every dependency alike, which `cargo xtask tidy` checks: what one has built the
# other uses. Other selections resolve features otherwise and would compile DataFusion again.

CARGO ?= cargo
.DEFAULT_GOAL := help
.PHONY: docs help demo run test lint program build unit integration release bench nightly sqlalchemy suite image k8s-build k8s-up test-k8s tools

help: ## list the chores
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

tools:
	@scripts/need cargo "Rust: https://rustup.rs" && scripts/need cc "a C compiler: apt-get install build-essential" \
	  && scripts/need python3 "Python 3: apt-get install python3 python3-venv"

program: tools ## build the program alone
	$(CARGO) build --package kiln

build: tools ## build everything once
	$(CARGO) build --workspace --all-targets

demo: program ## build, load TPC-H SF1 through COPY, run the 22 queries over the wire, say how to connect
	@scripts/demo

run: program ## build and serve ./kiln-data on 127.0.0.1:5433
	@$$(scripts/target-dir)/debug/kiln serve

lint: tools ## format, clippy with warnings as errors, the engine for arm64 too, the house's own rules
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	@scripts/lint-arm64
	$(CARGO) xtask tidy

unit: build ## tests beside the code
	$(CARGO) test --workspace --lib --bins

integration: build ## real server processes, real clients, SQL files, all TPC answers
	$(CARGO) test --workspace --test it

test: lint unit integration ## everything: format, lints, tidy, unit, integration, SQL files

nightly: build ## what takes longer than a test may: many crash cycles, big results, the long simulations
	KILN_NIGHTLY=1 $(CARGO) test --workspace --no-fail-fast

k8s-build: ## build a Kubernetes control plane from its Go modules, once: five minutes
	@tests/k8s/build

k8s-up: k8s-build ## run one, with its files in a folder below target, until it is interrupted
	@folder=$$(scripts/target-dir)/k8s-up && echo "export KUBECONFIG=$$folder/kubeconfig" && cat | tests/k8s/up $$folder

test-k8s: k8s-build build ## Kiln's resources and its operator against the real API server and its controllers
	KILN_TEST_K8S=required $(CARGO) test --workspace --test k8s; ended=$$?; \
	  cat $$(scripts/target-dir)/tmp/k8s-steps-*.md; exit $$ended

release: tools ## the fastest program: built, trained on the benchmarks, built again by what they needed
	@scripts/release

image: release ## an OCI image of it, target/kiln-image.tar, without a daemon
	@folder=$$(scripts/target-dir) && scripts/image $$folder/release/kiln $$folder/kiln-image.tar

bench: release ## TPC-H and TPC-DS SF1 beside DuckDB, with the release build
	@scripts/bench

docs: ## build the static site of the documents with MkDocs; prints where it is
	@scripts/need python3 "Python 3: apt-get install python3 python3-venv" && scripts/docs

sqlalchemy: build ## SQLAlchemy's dialect suite against Kiln; prints passed, failed, skipped
	@scripts/sqlalchemy-suite

suite: build ## another project's SQL tests, SUITE=duckdb FOLDER=…, on Kiln beside PostgreSQL; prints counts and reasons
	@$$(scripts/target-dir)/debug/suites $(SUITE) "$(FOLDER)" $(ARGUMENTS)
