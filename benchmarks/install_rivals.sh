#!/bin/sh
# Rival simulators for the benchmarks: ns-2.35, and a compiler for the twin (Debian, Ubuntu).
set -e
apt-get update
apt-get install --yes --no-install-recommends g++ ns2
