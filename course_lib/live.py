"""Is a reader there who can click? Then a cell may show controls; else it shows a picture."""

import importlib
import os
from typing import Any

from IPython import get_ipython


def is_live() -> bool:
    """Say whether controls would work: a kernel runs, it has `ipywidgets`, and nobody forbids it.

    COURSE_STATIC=1 in the environment forbids it: what is run to be printed, compared or put on a
    page has no reader yet.
    """
    if os.environ.get("COURSE_STATIC") == "1" or not hasattr(get_ipython(), "kernel"):
        return False
    try:
        load_widgets()
    except ImportError:
        return False
    return True


def load_widgets() -> Any:
    """Import `ipywidgets`, here and no earlier: everything but the controls works without it.

    Raises:  ImportError where it is not installed
    """
    return importlib.import_module("ipywidgets")
