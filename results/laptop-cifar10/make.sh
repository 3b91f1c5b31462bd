#!/bin/sh
# Makes the tables, the page and the figures of this folder from the runs of the grids in experiments/laptop-*.toml.
#   sh results/laptop-cifar10/make.sh RUNS        RUNS: the folder with laptop and the studies that were run
set -e
runs=${1:?name the folder of the runs}
here=$(dirname "$0")
for run in "$runs"/laptop/*; do
    [ -e "$run/results.json" ] && cp "$run/results.json" "$here/$(basename "$run").json"
done
dign landscape "$runs"/laptop/*-standard-seed? "$runs"/laptop/*-dign-seed? --split test --images 500 --device cpu --out "$here/landscape"
dign report "$runs/laptop" --quiet --out "$here/report.html" --figure "$here/laptop.png"
dign report "$runs/laptop" --quiet --format markdown --out "$here/table.md"
for study in sensitivity branches; do
    [ -d "$runs/laptop-$study" ] || continue
    dign grid "experiments/laptop-$study-cifar10.toml" --out "$runs/laptop-$study" --sensitivity --quiet
    mkdir -p "$here/$study"
    cp -r "$runs/laptop-$study/sensitivity/." "$here/$study"
done
