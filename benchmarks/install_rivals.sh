#!/bin/sh
# Rival simulators for the benchmarks: ns-2.35 (Debian, Ubuntu).
set -e
apt-get update
apt-get install --yes --no-install-recommends ns2
