"""The pinned numbers a module is held to: read them only after their digest has been checked."""

import hashlib
import json
from pathlib import Path
from typing import Any


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    section = dict(pairs)
    if len(section) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"the keys {twice} appear twice in one object; each may appear once")
    return section


def _reject_non_finite(constant: str) -> float:
    raise ValueError(f"{constant} is not a number that JSON has; every reference value is finite")


def _check_reference_arguments(text: str, sha256: str) -> None:
    for name, value in (("text", text), ("sha256", sha256)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a str; got {type(value).__name__}")
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise ValueError(
            f"sha256 must be 64 lower-case hexadecimal digits; got {sha256!r} ({len(sha256)} long)"
        )


def _check_reference_digest(text: str, sha256: str) -> None:
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"the reference text cannot be written as UTF-8: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest == sha256:
        return
    unclosed = text.count("{") - text.count("}")
    cut = f"\nIts end may be cut off: {unclosed} braces are never closed." if unclosed > 0 else ""
    raise ValueError(
        "the reference text is not the pinned one.\n"
        f"wanted SHA-256 {sha256}\n"
        f"got    SHA-256 {digest}, of {len(content)} bytes.{cut}\n"
        "Take the text and its digest again from an untouched copy of the course; "
        "never change the digest to match."
    )


def _parse_reference(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_non_finite
        )
    except ValueError as error:
        raise ValueError(
            f"the reference text matches its digest but cannot be read as JSON: {error}.\n"
            "Make it again with its generator in reference/."
        ) from None


def _check_schema_version(facts: Any) -> None:
    version = facts.get("schema_version") if isinstance(facts, dict) else None
    if type(version) is not int or version != 1:
        raise ValueError(
            f"schema_version must be 1; got {version!r}. This reader knows only version 1: "
            "take the notebook and the reference from the same copy of the course."
        )


def read_reference(text: str, sha256: str) -> dict[str, Any]:
    """Return the facts in a canonical JSON text, once the text proves to be the pinned one.

    Args:    text: the whole JSON text; sha256: hexadecimal digest of its UTF-8 bytes.
    Raises:  ValueError when the digest differs, the text is not JSON (cut off, a key given
             twice, NaN) or its schema_version is not 1; TypeError for anything but strings.
    """
    _check_reference_arguments(text, sha256)
    _check_reference_digest(text, sha256)
    facts = _parse_reference(text)
    _check_schema_version(facts)
    return facts


def _reference_file(name: str) -> Path:
    return Path(__file__).resolve().parent.parent / "reference" / name


def reference_json(name: str) -> str:
    """Return the text of reference/NAME.json in this checkout, byte for byte."""
    path = _reference_file(f"{name}.json")
    if not path.is_file():
        raise FileNotFoundError(
            f"no reference named {name!r}: {path} does not exist; "
            f"make it with reference/generate_{name}.py"
        )
    return path.read_bytes().decode("utf-8")


def reference_sha256(name: str) -> str:
    """Return the digest that reference/SHA256SUMS pins for NAME.json."""
    lines = _reference_file("SHA256SUMS").read_text(encoding="utf-8").splitlines()
    pins = {file: digest for digest, _, file in (line.partition("  ") for line in lines)}
    if f"{name}.json" not in pins:
        raise LookupError(
            f"reference/SHA256SUMS has no line for {name}.json; it pins {sorted(pins)}"
        )
    return pins[f"{name}.json"]
