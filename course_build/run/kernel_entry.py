"""What a forked kernel does: the nursery of kernels loads this file and calls `main`."""

import importlib.util
import os
import sys


def main(argv: list[str]) -> None:
    """Be the IPython kernel that `python -m ipykernel_launcher ...` starts."""
    from ipykernel.kernelapp import IPKernelApp

    launcher = importlib.util.find_spec("ipykernel_launcher").origin
    sys.orig_argv[:] = argv
    sys.argv[:] = [launcher, *argv[3:]]
    # the default was read from the environment when the class was made, in the nursery
    IPKernelApp.launch_instance(parent_handle=os.getppid())
