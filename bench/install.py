"""Install the peers that are missing, one by one: one that cannot be had does not cost the rest."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).resolve().parent / "requirements.txt"


def missing():
    """List the pins that this environment does not hold."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    wanted = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return [f"{name}=={pin}" for name, _, pin in wanted if installed(name) != pin]


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main():
    """Try each missing pin; say what failed, and leave the reporting of peers to the run."""
    for pin in missing():
        print(f"[bench] installing {pin} (minutes, if it must be compiled)", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "install", "-qq", "--no-input", pin]
        if subprocess.run(command, check=False).returncode != 0:
            print(f"[bench] {pin} could not be installed: it will be absent", file=sys.stderr)


if __name__ == "__main__":
    main()
