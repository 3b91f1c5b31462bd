#!/bin/bash
# Two machines with four GPUs each share the batches of one run; `sbatch examples/clusters/slurm.sh` starts it, and starts it
# again from its last checkpoint if the job is preempted or its time is over.
#SBATCH --job-name=dign
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --output=%x-%j.log
set -euo pipefail

run=${RUN:-runs/eight}  # on a file system that both machines see
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK

# SIGTERM, two minutes before the end, lets the run save a checkpoint and exit with 130.
status=0
if [ -e "$run/config.toml" ]; then
  srun dign train --resume "$run" --devices 4 --nodes 2 || status=$?
else
  srun dign train cifar10 --devices 4 --nodes 2 --sync-batch-norm --patience 600 --out "$run" || status=$?
fi
if [ "$status" = 130 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
