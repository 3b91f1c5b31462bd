"""One thread per test process: the tensors are tiny, and the processes share the cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # also for the commands that tests start

import torch

torch.set_num_threads(1)
