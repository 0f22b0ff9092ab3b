"""How a notebook comes by course_lib: the builder copies this function into its first folded cell.

It is what a learner may read before anything else, so it is short, and imports what it needs
inside: of the notebook's names it takes one. Python 3.11 is enough, nothing is downloaded.
"""


def use_course_lib(
    language: str, sha256: str, changed: str, other: str, common: str, files: dict[str, str]
) -> None:
    """Let `import course_lib` mean exactly the files packed here.

    Args:
        sha256: of the list that sha256sum would print of the files, unpacked
        changed, other: what is said if this cell was changed, if another course_lib is in the way
        common: what the files share, packed; each of them is packed against it
    """
    import atexit
    import base64
    import hashlib
    import importlib.util
    import os
    import shutil
    import signal
    import sys
    import tempfile
    import threading
    import zlib
    from pathlib import Path

    def digest(contents: dict[str, bytes]) -> str:
        sums = [f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in contents]
        return hashlib.sha256("".join(sums).encode()).hexdigest()

    def read(folder: Path) -> dict[str, bytes]:
        return {name: (folder / name).read_bytes() for name in files if (folder / name).is_file()}

    def unpack(text: str, against: bytes = b"") -> bytes:
        return zlib.decompressobj(-15, zdict=against).decompress(base64.b85decode(text))

    # A checkout, an installed wheel, an earlier run of this cell: the same files serve as well.
    spec = importlib.util.find_spec("course_lib")
    found = [*(spec.submodule_search_locations or [str(spec.origin)])] if spec else []
    if not any(digest(read(Path(place))) == sha256 for place in found):
        if found:
            print(other.format(place=found[0]))
        try:
            shared = unpack(common)
            contents = {name: unpack(text, shared) for name, text in files.items()}
        except (ValueError, zlib.error):
            contents = {}
        if digest(contents) != sha256:  # before anything is written, let alone run
            raise ValueError(changed.format(wanted=sha256[:8], came=digest(contents)[:8]))
        folder = Path(tempfile.mkdtemp(prefix="course_lib-"))  # new, so no two kernels meet in it
        owner = os.getpid()

        def remove(*signalled: object) -> None:
            if os.getpid() == owner:  # what was forked from here ends without taking the files
                shutil.rmtree(folder, ignore_errors=True)
            if signalled:  # and now what SIGTERM does anyway
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTERM)

        atexit.register(remove)
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, remove)
        for name, content in contents.items():
            path = folder / "course_lib" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for name in [name for name in sys.modules if name.split(".")[0] == "course_lib"]:
            del sys.modules[name]
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
    if "text.py" in files:
        vars(importlib.import_module("course_lib.text"))["LANGUAGE"] = language
