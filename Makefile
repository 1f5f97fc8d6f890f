# SPDX-License-Identifier: Apache-2.0
# The commands of a newcomer; everything else is meson's.
BUILD ?= build

.PHONY: all setup setup-all install demo check lint bench fuzz format clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

# What building takes, so that who wants the demo gets no web server; the other commands need the rest, too.
setup:
	@tools/setup build

setup-all:
	@tools/setup build test bench

$(BUILD)/build.ninja: | setup
	@tools/configure $(BUILD)

# Of what `make` built; so that root builds nothing in the folder of somebody else.
install:
	@meson install -C $(BUILD) --no-rebuild

check: setup-all
	@tools/check

lint: setup-all
	@tools/lint

demo: $(BUILD)/build.ninja
	@ninja -C $(BUILD) assay
	@ASSAY=$(BUILD)/assay tools/demo

bench: setup-all
	@tools/bench $(PARTS)

fuzz: setup-all
	@tools/fuzz

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-*
