"""How this process was started: alone, by torchrun, by SLURM, or by Fabric for `devices` processes.

Read from the environment, without torch. Lightning Fabric looks at the same variables when it joins the processes;
`tests/parallel/test_launching.py` compares the two.
"""

from __future__ import annotations

import os
import socket

from dign.core.errors import UserError


def is_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_slurm() -> bool:
    """Whether SLURM's srun started this process, rather than a user in an interactive job."""
    return "SLURM_NTASKS" in os.environ and os.environ.get("SLURM_JOB_NAME") not in ("bash", "interactive")


def resolve_process_counts(devices: int, nodes: int) -> tuple[int, int]:
    """Return the processes per node and the nodes: those asked for, or those that torchrun started.

    SLURM's variables exist in a plain shell as well, so they do not prove that there are other processes to wait for:
    what the user asks for must agree with them, as Fabric requires.

    Raises:
        UserError: The numbers differ from those of the launcher.
    """
    started = _started()
    if started is None or started == (devices, nodes):
        return devices, nodes
    if (devices, nodes) == (1, 1) and is_torchrun():
        return started
    raise UserError(
        f"devices {devices} and nodes {nodes} do not match what {'torchrun' if is_torchrun() else 'SLURM'} started: "
        f"use devices {started[0]} and nodes {started[1]}, or start one process."
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
    """Return the rank of this process on its node."""
    return int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", 0) if is_slurm() else 0))


def is_rank_zero() -> bool:
    """Whether this process is rank zero, which reports for all."""
    if is_torchrun():
        return os.environ["RANK"] == "0"
    if is_slurm():
        return os.environ.get("SLURM_PROCID", "0") == "0"
    return local_rank() == 0 and os.environ.get("NODE_RANK", "0") == "0"


def exit_code_for_rank(code: int) -> int:
    """Return the exit code of this process where all end for the same reason, which rank zero reports.

    Fabric kills the process that the user started as soon as one that it launched fails: those must end with 0.
    """
    return 0 if not is_torchrun() and not is_slurm() and local_rank() > 0 else code


def torchrun_job_id() -> str | None:
    """Return what stays the same when torchrun restarts its processes after one has died; None without torchrun."""
    if not is_torchrun():
        return None
    return f"{os.environ['TORCHELASTIC_RUN_ID']}/{socket.gethostname()}/{os.getppid()}"
