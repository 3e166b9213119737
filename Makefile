# make book   sets up, executes and builds the book into _build/html
# make test   sets up and passes the tests that find mistakes; `make test-all` passes the slow ones too
# Each stands alone; `make help` lists the rest.

PYTHON ?= python3
# TORCH=cpu takes PyTorch's CPU-only build on Linux (0.2 GB in place of 3 GB).
TORCH ?=
# HUB=yes runs all chapters with the Hugging Face hub and what checkpoints there are, as the published book shows them.
HUB ?=
# With which instructions of the processor `make test-all` tests once more what computes, chapters too.
NUMERIC ?= default avx2
# Which solutions of chapters a build shows: SOLUTIONS=no leaves them out.
SOLUTIONS ?=
# Where `make serve` listens, on this machine only.
PORT ?= 8000
VENV_BIN = .venv/bin
RUN = $(VENV_BIN)/python

# Set-up leaves compiling to the first import; where that is not kept, each of a hundred processes compiles PyTorch anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup book pdf epub screenshots lighthouse test test-all course samples grade slides bench study serve lint chapters conformance results pictures lock set-repository check-repository clean

help:           ## list the commands
	@sed -n 's/^\([a-z-]*\): *[a-z ]*## /  make \1\t/p' Makefile | expand -t 26

setup:          ## create .venv with the pinned versions (the other commands do it by themselves)
	@command -v $(PYTHON) >/dev/null || { echo "set-up: no $(PYTHON) here; install Python 3.11 to 3.13, or name one: make PYTHON=python3.12 book" >&2; exit 1; }
	@$(PYTHON) tools/setup.py $(if $(TORCH),--torch $(TORCH))

book: setup     ## execute the chapters and build the book into _build/html
	@$(RUN) tools/book.py build $(if $(HUB),--hub) $(if $(filter no,$(SOLUTIONS)),--without-solutions)

pdf: book       ## print the whole book as one PDF into _build, by Chromium, 5 minutes
	@$(RUN) tools/pdf.py

epub: book      ## make the whole book one EPUB in _build
	@$(RUN) tools/epub.py

screenshots: book ## take pictures of every page into _build/screenshots, on a phone and a desktop, light and dark
	@$(RUN) tools/screenshots.py

lighthouse: book ## measure six kinds of pages with Lighthouse, which npx fetches, 10 minutes (PAGES=all, or names)
	@$(RUN) tools/lighthouse.py $(PAGES)

test: setup     ## the tests that find mistakes, in minutes: package, chapters, built pages
	@$(RUN) tools/test.py

test-all: setup ## every test: the slow ones too (kills, Ray, compilers, faults of the hub, all pages in every mode)
	@$(RUN) tools/test.py --all --numeric $(NUMERIC)

course: setup   ## make the five assignments into _build/course (SEED=words of your own; ROSTER=file: numbers of their own for each student)
	@$(RUN) tools/course.py $(if $(SEED),--seed "$(SEED)") $(if $(ROSTER),--roster "$(ROSTER)")

samples: setup  ## make the samples of the course that the book shows
	@$(RUN) tools/samples.py

grade: setup    ## grade notebooks in a sandbox: make grade SUBMISSIONS=folder (OUT, ASSIGNMENT, FEEDBACK, TOTALS, ROSTER, LATE, LIMIT, UNSAFE)
	@$(if $(SUBMISSIONS),,echo "grade: name the folder that holds the notebooks: make grade SUBMISSIONS=folder" >&2; exit 1)
	@$(RUN) course/grading/grade.py "$(SUBMISSIONS)" $(if $(OUT),--out "$(OUT)") $(if $(ASSIGNMENT),--assignment "$(ASSIGNMENT)") $(if $(FEEDBACK),--feedback "$(FEEDBACK)") $(if $(ROSTER),--roster "$(ROSTER)") $(if $(LATE),--late "$(LATE)") $(if $(TOTALS),--totals) $(if $(LIMIT),--seconds "$(LIMIT)") $(if $(UNSAFE),--unsafe)

slides: setup   ## make slides of a chapter into _build/slides: make slides CHAPTER=why/permutation-equivariance
	@$(RUN) tools/slides.py "$(CHAPTER)"

bench: setup    ## time and memory beside other libraries, into the book's page, 10 minutes (ONLY=rope or QUICK=1 for a try)
	@$(RUN) -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

study: setup    ## run what is left of a study into results/: make study NAME=one-start
	@$(RUN) -m studies "$(NAME)"

serve: book     ## open the built book on http://127.0.0.1:8000 (PORT=8001 for another port)
	@$(RUN) tools/book.py serve --port $(PORT)

lint: setup     ## format, lint, types, the layers of the design, and how long the chapters are
	@$(VENV_BIN)/ruff format --check .
	@$(VENV_BIN)/ruff check .
	@$(VENV_BIN)/mypy
	@$(VENV_BIN)/lint-imports
	@$(RUN) tools/measure.py

chapters: setup ## run every chapter and store its outputs in the notebook (after editing one)
	@$(RUN) tools/chapters.py execute

conformance: setup ## compare the schemes that other libraries have with theirs, and write the page
	@$(RUN) tools/conformance_page.py make

results: setup  ## write the stored runs of results/ into the package and the pages of evidence (after new runs)
	@$(RUN) tools/results.py
	@$(RUN) tools/evidence.py
	@$(RUN) tools/census_page.py
	@$(RUN) tools/bugs_page.py

pictures: setup ## draw the pictures of the landing page and the README anew
	@$(RUN) tools/pictures.py

lock: setup     ## resolve requirements/lock.txt anew
	@$(RUN) tools/lock.py

set-repository: setup ## write the repository's address everywhere: make set-repository REPOSITORY=owner/name
	@$(RUN) tools/repository.py set "$(REPOSITORY)"

check-repository: setup ## fail while the address is still the placeholder; publishing runs this first
	@$(RUN) tools/repository.py check

clean:          ## remove what was built and the environment
	rm -rf _build .venv dist
