# The commands of the project. `make help` lists them.

PYTHON = python3
# The values reach the commands through the environment, so they may contain any characters. DATABASE is exported
# verbatim too, though no command reads it; otherwise make would expand it.
override export SOURCE := $(value SOURCE)
override export CORRECTIONS := $(value CORRECTIONS)
override export BASE := $(value BASE)
override export FOLDER := $(value FOLDER)
override export F1DB := $(value F1DB)
override export PREVIOUS := $(value PREVIOUS)
override export TESTS := $(value TESTS)
override export DATABASE := $(value DATABASE)
ifneq ($(value DATABASE),)
override export RACEDATA_DATABASE := $(value DATABASE)
endif

# More processes than a small machine has cores, because many tests mostly wait. For one file, or a debugger:
# .venv/bin/pytest FILE
PARALLEL = -n 3 --dist worksteal

# Without this mode, a folder named racedata, such as the checkout, hides the package if Python starts next to it.
EDITABLE := --config-settings editable_mode=compat --editable

.PHONY: help install load-data serve python test test-system test-wheel test-base test-image image bench freeze picture lint coverage check dist lock release release-check audit clean
.DEFAULT_GOAL := help

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: .venv/installed  ## install the service into .venv

.venv/installed: setup.cfg pyproject.toml | python
	@echo "Installing into .venv …"
	@.venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check $(EDITABLE) .
	@touch $@

.venv/installed-%: .venv/installed tests/requirements.lock
	@echo "Installing what the tests need …"
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/requirements.lock $(EDITABLE) '.[$*]'
	@touch $@

load-data: install  ## build the database: SOURCE="tracinginsights f1db" (names, folders, zips, URLs; without it, the sources of the existing database, or else the sample), DATABASE=file, CORRECTIONS=none, REPLACE=1 (replace even a database that cannot be read)
	@# Until the loader handles Ctrl-C, it is ignored: while Python starts, it would print a traceback.
	@trap '' INT; .venv/bin/python scripts/load_data.py $(if $(REPLACE),--replace) -- $${SOURCE:+"$$SOURCE"}

serve: install  ## serve the database on http://127.0.0.1:8000 (HOST, PORT); builds one from the sample if there is none
	@exec .venv/bin/racedata serve

python:
	@$(PYTHON) -c 'import sqlite3, sys; sys.exit((sys.version_info < (3, 11)) + (sqlite3.sqlite_version_info < (3, 37)))' \
		2>/dev/null || { echo "racedata needs Python 3.11 or newer, with SQLite 3.37 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }

test: .venv/installed-test  ## run the tests that need only Python, without the long ones
	@.venv/bin/pytest $(PARALLEL) -m "not long"

test-system: .venv/installed-test .venv/installed-system  ## run the tests that need nginx, Redis, systemd and Chromium, and longer tests with real traffic; also MariaDB, PostgreSQL if installed; f1dataR if F1DATAR is set
	@.venv/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder -p no:schemathesis -p no:anyio \
		--ignore tests/system/test_image.py tests/system

# A copy of the checkout without the package, so that the tests import the wheel. test_makefile.py and test_release.py are
# about the checkout itself.
test-wheel: dist  ## run tests against the wheel, without the checkout: PYTHON=python3.13, TESTS="long or dump" (which; without it, those of `make test`)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
		git ls-files -z -- . ':!racedata' | xargs -0 cp --parents --target-directory="$$folder" && \
		$(PYTHON) -m venv --without-pip "$$folder/.venv" && \
		build/dist/bin/pip --python "$$folder/.venv/bin/python" install --quiet --disable-pip-version-check \
			"$$(echo dist/*.whl)[test]" && \
		cd "$$folder" && .venv/bin/pytest $(PARALLEL) -m "$${TESTS:-not long}" --ignore tests/test_makefile.py --ignore tests/test_release.py

bench: .venv/installed  ## compare the speed of the service and of a minimal app (needs wrk and nginx; takes some minutes)
	@.venv/bin/python scripts/bench/bench.py -- "$${RACEDATA_DATABASE:-data/racedata.db}"

freeze: .venv/installed-test  ## write a hash for every address and table: FOLDER=folder; ERGAST_DUMP and F1DB_DUMP name dumps (see CONTRIBUTING.md)
	@.venv/bin/python scripts/freeze.py "$$FOLDER"

picture: .venv/installed-test .venv/installed-system  ## take the screenshot for README.md: DATABASE=file (needs Chromium)
	@.venv/bin/python scripts/picture.py

lint: .venv/installed-test  ## check style, formatting and types
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --quiet --check .
	@.venv/bin/mypy

coverage: .venv/installed-test  ## run the tests of `make test` and the long ones, and check that their branch coverage is 98%
	@.venv/bin/coverage erase
	@.venv/bin/coverage run -m pytest $(PARALLEL)
	@.venv/bin/coverage combine --quiet
	@.venv/bin/coverage report

check: lint test  ## lint, types and tests: must pass before a change is merged

# setuptools builds the packages of a release, so it is the same for everybody.
build/dist/bin/twine: deploy/requirements.lock | python
	@$(PYTHON) -m venv build/dist && build/dist/bin/pip install --quiet --disable-pip-version-check build twine \
		"$$(grep -o '^setuptools==[0-9.]*' deploy/requirements.lock)"
	@touch $@

dist: build/dist/bin/twine  ## build the source distribution and the wheel into dist/
	@rm -rf dist
	@build/dist/bin/python -m build --no-isolation --outdir dist . >build/dist.log 2>&1 || { cat build/dist.log >&2; exit 1; }
	@build/dist/bin/twine check --strict dist/*

# `--isolation chroot` and `--network host` also work inside a container. The build uses this machine's CA certificates.
# EPOCH is the time that all of its files have: see scripts/release.py.
image:  ## build the container image `racedata` with buildah: BASE=image (a Python image; see deploy/Containerfile), ARCH=arm64 (an image `racedata:arm64`)
	@mkdir -p build
	@buildah bud $(if $(value EPOCH),--no-cache --timestamp "$(EPOCH)" --build-arg SOURCE_DATE_EPOCH="$(EPOCH)",--layers) \
		$(if $(value ARCH),--arch "$(ARCH)") --isolation chroot --network host --format docker --volume /etc/ssl/certs:/etc/ssl/certs:ro \
		$(if $(value BASE),--build-arg BASE="$$BASE") --tag racedata$(if $(value ARCH),:$(ARCH)) --file deploy/Containerfile \
		--ignorefile deploy/Containerfile.dockerignore . >build/image.log 2>&1 \
		|| { tail -n 20 build/image.log >&2; exit 1; }

# A base image made of Debian's packages, so the tests need no image registry. They also use it as the image of nginx.
# ARCH=arm64 makes the one for that machine, and `racedata-base:all`, which has both.
TEST_BASE = localhost/racedata-base$(if $(value ARCH),:$(ARCH))
test-base:
	@podman image exists $(TEST_BASE) || { mkdir -p build && \
		mmdebstrap --quiet --variant=minbase $(if $(value ARCH),--arch="$(ARCH)") --include=ca-certificates,nginx-light,python3,python3-venv \
			--customize-hook='cd "$$1" && rm etc/nginx/sites-enabled/default && cd var/log/nginx && ln -sf /dev/stderr error.log && ln -sf /dev/stdout access.log' \
			"$$(. /etc/os-release && echo "$$VERSION_CODENAME")" build/base.tar && \
		podman import --quiet $(if $(value ARCH),--arch "$(ARCH)") build/base.tar $(TEST_BASE) >build/image.log && \
		rm build/base.tar; }
	@$(if $(value ARCH),$(MAKE) --no-print-directory test-base ARCH= && { podman manifest exists localhost/racedata-base:all || \
		podman manifest create localhost/racedata-base:all containers-storage:localhost/racedata-base \
		containers-storage:$(TEST_BASE) >/dev/null; },podman tag localhost/racedata-base localhost/nginx:stable)

test-image: .venv/installed-test .venv/installed-image test-base  ## build the container image on a base image made from Debian's packages, and run its tests: needs buildah, podman, runc, mmdebstrap; ARCH=arm64 (those that are fast enough with qemu-user-static)
	@$(MAKE) --no-print-directory image BASE=$(TEST_BASE)
	@ARCH=$(ARCH) .venv/bin/pytest tests/system/test_image.py $(if $(value ARCH),-m emulated)

build/lock/bin/uv: | python
	@$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet --disable-pip-version-check uv
	@touch $@

# Without --upgrade, versions that are already in a file stay.
COMPILE = build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --no-annotate \
	--custom-compile-command "make lock" setup.cfg
LOCK = $(COMPILE) --extra redis --generate-hashes build/lock/build.in --output-file
LOCK_TESTS = $(COMPILE) --extra test --extra system --extra image --extra release --output-file

build/lock/build.in: pyproject.toml build/lock/bin/uv
	@build/lock/bin/python -c 'import tomllib; \
		print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' >$@

lock: build/lock/build.in  ## write the newest versions to deploy/requirements.lock (for the image) and tests/requirements.lock (for the tests and lint); needs the network
	@$(LOCK) deploy/requirements.lock --upgrade
	@$(LOCK_TESTS) tests/requirements.lock --upgrade

# The tests compare the lock with setup.cfg.
release-check: .venv/installed-test build/lock/build.in  ## check all that a release needs: commit, version, changelog, address, documents, lock, wheel, audit, image (needs the network)
	@.venv/bin/python scripts/release.py --check
	@.venv/bin/pytest --quiet tests/test_documents.py tests/test_makefile.py
	@cp deploy/requirements.lock build/lock/new.lock && $(LOCK) build/lock/new.lock
	@cmp -s deploy/requirements.lock build/lock/new.lock || \
		{ echo "deploy/requirements.lock does not match setup.cfg; run: make lock" >&2; exit 1; }
	@$(MAKE) --no-print-directory dist test-image audit

release: .venv/installed-test .venv/installed-release build/dist/bin/twine  ## make a release in dist/: F1DB=zip (a file or URL), PREVIOUS=database (of the last release), OFFLINE=1 (without release-check), BASE as for the image
	@$(if $(value OFFLINE),,$(MAKE) --no-print-directory release-check)
	@.venv/bin/python scripts/release.py

audit: python  ## check the packages in the image for known vulnerabilities (needs the network)
	@$(PYTHON) -m venv build/audit && build/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	@build/audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement deploy/requirements.lock 2>build/audit.log \
		|| { tail -n 1 build/audit.log >&2; echo "audit: vulnerabilities found, or the audit failed; see above, and build/audit.log" >&2; exit 1; }

clean:  ## remove .venv and everything that was built, including the database
	rm -rf .venv build dist *.egg-info .pytest_cache .hypothesis data/racedata.db data/racedata.sources.db
	find . -name __pycache__ -prune -exec rm -r {} +
