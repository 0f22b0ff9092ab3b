"""Import this before nbformat or jupytext: it saves 1.3 s of every run.

nbformat imports jsonschema, which imports rfc3987_syntax where it is installed (jupyter brings
it along) and so builds 35 Lark parsers for a format check that no notebook needs. jsonschema
takes the ImportError that this None causes for "not installed" and leaves that check out.
"""

import contextlib
import sys
from collections.abc import Iterator

# jupytext imports these for its part in a Jupyter server, where they are installed.
OF_A_SERVER = ("tornado", "jupyter_client")

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


@contextlib.contextmanager
def without_server() -> Iterator[None]:
    """Import something as if no Jupyter server were installed; afterwards it is there again."""
    hidden = [name for name in OF_A_SERVER if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
