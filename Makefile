# SPDX-License-Identifier: Apache-2.0
# The commands of a newcomer; everything else is meson's.
BUILD ?= build

.PHONY: all setup demo check bench fuzz format clean

all: setup $(BUILD)/build.ninja
	ninja -C $(BUILD)

setup:
	@tools/setup

$(BUILD)/build.ninja:
	meson setup $(BUILD)

check: setup
	@tools/check

fuzz: setup
	@tools/fuzz

clean:
	rm -rf build build-*
