# The only list of commands; CI calls these. Each makes .venv ready first (course_build/environment/bootstrap.py).

PYTHON ?= python3
COURSE = $(PYTHON) -m course_build.environment
PYTEST = $(COURSE) -m pytest -n auto --dist loadgroup
SHA256 = $(if $(shell command -v sha256sum),sha256sum,shasum -a 256)
CACHES = .pytest_cache .hypothesis .ruff_cache .mypy_cache
# LANG is set in every shell: only what the command line gives counts (MODULE=3 -> --module 3).
option = $(if $(filter command,$(origin $(1))),--$(shell echo $(1) | tr A-Z a-z) $($(1)))
ifeq ($(origin LANG),command line)
unexport LANG
endif

.DEFAULT_GOAL := help
COMMANDS := help notebooks test delivery proof check weigh run drift lab reference score bench \
	bench-run figures site teach slides lite compat audit lock clean clean-all
.PHONY: $(COMMANDS)

# The name of a folder or a file here is no command: make would call it up to date, in silence.
MEANT.tests := test
MEANT.build := notebooks, make site
MEANT.work := lab
MISTAKEN := $(sort $(filter-out Makefile $(COMMANDS),$(wildcard *) $(wildcard */) tests build work))
meant = $(or $(MEANT.$(@:/=)),$(filter $(@:/=),$(COMMANDS)),help)
.PHONY: $(MISTAKEN)
$(MISTAKEN):
	@echo "make: $@ is no command; did you mean: make $(meant)?" >&2; exit 2

# A variable that nobody reads, such as module=3, would be obeyed by doing everything.
KNOWN := ARGS MODULE LANG EDITION SHARD PYTHON
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
UNKNOWN := $(filter-out $(KNOWN) SHELL CI,$(GIVEN))
$(if $(UNKNOWN),$(error no such variable: $(UNKNOWN); there are $(KNOWN)))

help: ## list these commands
	@grep -E '^[a-z-]+:.*## ' Makefile | while IFS=: read -r name text; do \
		printf '  make %-10s %s\n' "$$name" "$${text#*## }"; done
	@echo '  more with ARGS, for example: make run MODULE=3 ARGS="--cache -p seed 7"; ARGS=--help lists it'

notebooks: ## render every notebook in every language
	@$(COURSE) build_notebooks.py $(ARGS)

test: check ## what a contributor needs: check, then the tests that the changes since the push can reach
	@$(PYTEST) --touched $(ARGS)

delivery: ## what is slow: browsers, site, grading, slides, faults, every notebook in every language
	@$(PYTEST) -m "delivery and not thorough" $(ARGS)

proof: test delivery ## both

check: ## in seconds: notebooks fresh, twins in step, words right, numbers pinned, code clean
	@$(COURSE) build_notebooks.py --check
	@$(COURSE) build_notebooks.py proofread
	@$(COURSE) -m ruff check --quiet .
	@$(COURSE) -m ruff format --check --quiet .
	@$(COURSE) -m course_build.weight.types
	@$(COURSE) -m course_build.weight --check
	@$(COURSE) -m course_build.environment.lock --check
	@cd reference && $(SHA256) -c SHA256SUMS

weigh: ## what the course weighs by room, notebook, contract and test, beside its budgets
	@$(COURSE) -m course_build.weight

run: ## execute the notebooks and report; narrow it: MODULE=3 LANG=ru EDITION=learner SHARD=1/2
	@$(COURSE) -m course_build.run $(foreach name,MODULE LANG EDITION SHARD,$(call option,$(name))) $(ARGS)

drift: ## what the notebooks printed in the last run, beside what was accepted (ARGS=--accept)
	@$(COURSE) -m course_build.drift $(ARGS)

lab: ## open the course in JupyterLab, in a copy of your own: work/; LANG=ru opens the Russian one
	@$(COURSE) -m course_build.lab $(call option,LANG) $(ARGS)

reference: ## compute the reference numbers again, in floats and in 50 digits
	@for program in reference/generate_*.py reference/crosscheck_*.py; do \
		$(COURSE) "$$program" || exit; done

score: ## hold every variant to its contract; write the mutation score into the readmes
	@$(COURSE) -m tests.contracts.score

bench: ## time the fast decoder beside its peers, which it installs first (half an hour)
	@$(COURSE) -m bench.install
	@$(COURSE) -m bench $(ARGS)

bench-run: ## hold runner and builder to their targets of speed (many minutes)
	@$(COURSE) -m tests.run.bench $(ARGS)

figures: ## execute the notebooks and write their figures to figures/
	@$(COURSE) -m course_build.outputs.figures

site: ## build the pages of the course into build/site/, to be read offline
	@$(COURSE) -m course_build.site

teach: ## for teachers, into build/teaching/: student and teacher editions, an nbgrader course
	@$(COURSE) -m course_build.teaching $(ARGS)

slides: ## each module as slides, into build/teaching/slides/, to be shown offline
	@$(COURSE) -m course_build.teaching.slides $(ARGS)

lite: ## Module 4's first stage to try in a browser, into build/lite/, proven in Chromium offline
	@$(COURSE) -m course_build.lite

compat: ## prove the declared ranges: ARGS=oldest (with PYTHON=python3.11) or ARGS=newest
	@$(PYTHON) -m course_build.environment.compat $(ARGS)

# An advisory that the course must live with: --ignore-vuln ID here, and its reason beside it.
ACCEPTED =

# --strict: no answer about a package is no clean bill. PyPI knows torch 2.13.0, and no 2.13.0+cpu.
audit: ## ask whether anything installed here has a known vulnerability
	@mkdir -p build
	@$(COURSE) -m pip list --format=freeze --disable-pip-version-check > build/installed.txt
	@sed 's/+.*//' build/installed.txt > build/audited.txt
	@$(COURSE) -m pip_audit --strict --no-deps --disable-pip --progress-spinner off --desc off \
		--requirement build/audited.txt $(ACCEPTED) $(ARGS)

lock: ## write the lock files anew after a pin has changed; ARGS=--upgrade takes newer versions
	@$(COURSE) -m course_build.environment.lock $(ARGS)

clean: ## remove build/, *.egg-info and caches
	@find . \( -path ./.venv -o -path ./work \) -prune -o \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -print -exec rm -rf {} +
	@for path in build *.egg-info $(CACHES); do \
		if [ -e "$$path" ]; then rm -rf "$$path" && echo "./$$path"; fi; done
	@echo "removed what is listed above; the environment .venv stays (make clean-all)"

clean-all: clean ## remove the environment too
	@rm -rf .venv .venv.lock && echo "removed ./.venv"
