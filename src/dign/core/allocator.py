"""Reuse of memory on a CPU, instead of returning it to the system after every step."""

from __future__ import annotations

import ctypes
import os
import platform
from functools import cache

# From glibc's malloc.h and Linux's mman.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_MADV_HUGEPAGE = 14
_LARGE_PAGE = 2 << 20


@cache
def reuse_memory() -> bool:
    """Let this process keep the memory that it frees, in huge pages where the system has them.

    glibc requests memory for every tensor of more than a few megabytes from the system and returns it when freed: every
    training step maps and clears the same gigabytes page by page. Afterwards the process keeps its peak memory
    until it ends. For programs that train or evaluate on Linux; results do not change.

    Returns:
        Whether the system supports it.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    if not (libc.mallopt(_MMAP_MAX, 0) and libc.mallopt(_TRIM_THRESHOLD, -1)):
        return False
    libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    first = libc.sbrk(0)
    # The heap grows by addresses alone, which become memory as they are used. free(NULL), if refused, does nothing.
    libc.free(libc.malloc(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2))
    first, last = -(-first // _LARGE_PAGE) * _LARGE_PAGE, libc.sbrk(0)
    if last > first:
        libc.madvise(first, last - first, _MADV_HUGEPAGE)  # advice: systems without huge pages ignore it
    return True
