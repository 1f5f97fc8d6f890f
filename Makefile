# SPDX-License-Identifier: Apache-2.0
# The commands of a newcomer; everything else is meson's.
BUILD ?= build

.PHONY: all setup demo check lint bench fuzz format clean

all: setup $(BUILD)/build.ninja
	@meson compile -C $(BUILD)

setup:
	@tools/setup

$(BUILD)/build.ninja:
	meson setup $(BUILD) >/dev/null

check: setup
	@tools/check

lint: setup
	@tools/lint

demo: all
	@tools/demo

bench: setup
	@tools/bench $(PARTS)

fuzz: setup
	@tools/fuzz

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-*
