"""What `make lab` adds to JupyterLab: a notebook that was only opened is saved as it was."""

import json
import warnings
from pathlib import Path

OPENED = ("kernelspec", "language_info")  # JupyterLab writes here which Python opened the notebook


def keep_what_opening_changes(model, path, contents_manager, **_):
    """Before a notebook is saved: keep what its file says of the kernel, if it is the same one."""
    if model["type"] != "notebook":
        return
    file = Path(contents_manager.root_dir, path.strip("/"))
    try:
        before = json.loads(file.read_text(encoding="utf-8"))["metadata"]
        same = before["kernelspec"]["name"] == model["content"]["metadata"]["kernelspec"]["name"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    if same:
        kept = {name: before[name] for name in OPENED if name in before}
        model["content"]["metadata"].update(kept)


warnings.filterwarnings("ignore", "Overriding existing pre_save_hook")  # with itself, it tells
c = get_config()  # noqa: F821  (Jupyter puts it here)
c.FileContentsManager.pre_save_hook = keep_what_opening_changes
