#!/bin/sh
# Makes everything in this folder: 15 small training runs (about 15 s each on one core), their landscapes, the table.
#   sh results/landscape-digits/make.sh RUNS        RUNS: a folder for the run folders
# The theory is checked on a run of each method and on a network of ReLUs (ResNet-18, which takes some minutes).
set -e
runs=${1:?name a folder for the runs}
here=$(dirname "$0")
for seed in 0 1 2 3 4; do
    for name in standard dign dign-strong; do
        case $name in
            standard) options="--method standard" ;;
            dign) options="--method dign" ;;
            dign-strong) options="--method dign --weight 1" ;;
        esac
        [ -e "$runs/$name-$seed/model.safetensors" ] ||
            dign train digits --preset digits $options --seed $seed --device cpu --out "$runs/$name-$seed"
    done
done
[ -e "$runs/resnet18-0/model.safetensors" ] ||
    dign train digits --preset digits --model resnet18 --epochs 4 --method standard --device cpu --out "$runs/resnet18-0"
dign landscape "$runs"/standard-? "$runs"/dign-? "$runs"/dign-strong-? --split test --draws 8 --device cpu --out "$here"
dign landscape "$runs/standard-0" "$runs/dign-0" --split test --images 64 --theory --device cpu --out "$here/theory"
dign landscape "$runs/resnet18-0" --split test --images 8 --theory --device cpu --out "$here/theory-relu"
python "$here/table.py"
