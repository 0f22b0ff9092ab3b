"""Import this before nbformat or jupytext: it saves 1.2 s of every run.

nbformat imports jsonschema, which imports rfc3987_syntax where it is installed (jupyter brings
it along) and so builds 35 Lark parsers for a format check that no notebook needs. jsonschema
takes the ImportError that this None causes for "not installed" and leaves that check out.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
