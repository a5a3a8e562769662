# Targets for people; .ci/run calls "make test". Needs Go, a C compiler, npm
# and, for the tests and the demo, Debian's packages: see scripts/deps.sh.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help deps build lint test oracle fuzz bench soak corpus demo clean

GO ?= go
FUZZTIME ?= 20s
SOAK ?= 10m

# Environment of the oracle test: silero-vad-go is linked against ONNX Runtime
# at build time, with the C header that yalue/onnxruntime_go carries.
ORACLE_ENV = CGO_CFLAGS="-I$$($(GO) list -m -f '{{.Dir}}' github.com/yalue/onnxruntime_go)" \
	CGO_LDFLAGS="-L$(CURDIR)/third_party/lib -Wl,-rpath,$(CURDIR)/third_party/lib"

help: ## list the targets
	@awk -F ': .*## |:.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## fetch and install what is not Go source; nothing when it is there
	@scripts/deps.sh

build: ## bin/sttbench and bin/sttlocal
	$(GO) build -trimpath -o bin/sttbench ./cmd/sttbench
	$(GO) build -trimpath -o bin/sttlocal ./cmd/sttlocal

lint: ## gofmt, go vet, staticcheck, syntax of the scripts
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "run gofmt -w on:" $$unformatted >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@for script in scripts/*.sh .ci/run; do bash -n "$$script" || exit 1; done

test: deps lint ## everything that must hold before a commit
	STTBENCH_REQUIRE_DEPS=1 $(GO) test -race -parallel 8 ./...
	@$(MAKE) --no-print-directory oracle

oracle: deps ## our VAD against an independent library
	$(ORACLE_ENV) STTBENCH_REQUIRE_DEPS=1 $(GO) test -tags silerovadgo ./vad/

fuzz: deps ## every fuzz target for FUZZTIME (20s)
	@GO=$(GO) scripts/fuzz.sh $(FUZZTIME)

bench: deps ## Go benchmarks of what runs beside a session, with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./streamer ./record ./vad ./endpoint ./providers/... ./scoring/...

soak: ## 100 streams with random faults for SOAK (10m): memory, goroutines, classes
	STTBENCH_SOAK=$(SOAK) $(GO) test -tags soak -run Soak -v -timeout 2h ./providers/conformance

corpus: deps ## the demo corpus in testdata/demo
	@scripts/demo-corpus.sh

demo: corpus build ## a real run against two servers on this machine
	@scripts/demo.sh

clean: ## remove what was built; keeps third_party and runs
	rm -rf bin testdata/demo
