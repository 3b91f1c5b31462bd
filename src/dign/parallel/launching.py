"""How this process was started: alone, by torchrun, by SLURM, or by `--devices`.

Read from the environment, without torch. Lightning Fabric looks at the same variables when it joins the processes;
`tests/parallel/test_launching.py` holds the two together.
"""

from __future__ import annotations

import os
import socket

from dign.core.errors import UserError


def is_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_slurm() -> bool:
    """Whether SLURM's srun started this, rather than a person in an interactive job."""
    return "SLURM_NTASKS" in os.environ and os.environ.get("SLURM_JOB_NAME") not in ("bash", "interactive")


def resolve_process_counts(devices: int, nodes: int) -> tuple[int, int]:
    """Processes per node, and nodes: what was asked for, or what torchrun started.

    SLURM's variables are there also where nothing but a shell runs, so they do not say that there are others to wait
    for: what a person asks for must agree with them, as Fabric wants it.
    """
    started = _started()
    if started is None or started == (devices, nodes):
        return devices, nodes
    if (devices, nodes) == (1, 1) and is_torchrun():
        return started
    raise UserError(
        f"--devices {devices} --nodes {nodes} is not what {'torchrun' if is_torchrun() else 'SLURM'} has started: say "
        f"--devices {started[0]} --nodes {started[1]} (or start one process)."
    )


def _started() -> tuple[int, int] | None:
    if is_torchrun():
        here = int(os.environ["LOCAL_WORLD_SIZE"])
        return here, int(os.environ["WORLD_SIZE"]) // here
    if is_slurm():
        nodes = int(os.environ.get("SLURM_NNODES", 1))
        return int(os.environ.get("SLURM_NTASKS_PER_NODE", int(os.environ["SLURM_NTASKS"]) // nodes)), nodes
    return None


def local_rank() -> int:
    """The number of this process on its machine."""
    return int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", 0) if is_slurm() else 0))


def is_rank_zero() -> bool:
    """Whether this process is the one that speaks for all."""
    if is_torchrun():
        return os.environ["RANK"] == "0"
    if is_slurm():
        return os.environ.get("SLURM_PROCID", "0") == "0"
    return local_rank() == 0 and os.environ.get("NODE_RANK", "0") == "0"


def exit_code_for_rank(code: int) -> int:
    """The exit code of this process where all end for the same reason, which the first one tells.

    Fabric kills the process that a person started as soon as one that `--devices` made beside it fails: those do not.
    """
    return 0 if not is_torchrun() and not is_slurm() and local_rank() > 0 else code


def torchrun_job_id() -> str | None:
    """What stays the same when torchrun starts its processes again after one has died; None without torchrun."""
    if not is_torchrun():
        return None
    return f"{os.environ['TORCHELASTIC_RUN_ID']}/{socket.gethostname()}/{os.getppid()}"
