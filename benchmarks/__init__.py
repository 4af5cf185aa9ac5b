"""Benchmarks: medians and ratios of one run. `make bench` runs all of them."""
