"""Deflate (RFC 1951) in Python: the same bytes on every machine, which no zlib promises.

zlib, zlib-ng and Apple's zlib pack one text into different bytes, and all of them unpack each
other's. A committed notebook may not depend on who built it, so it is packed here and unpacked by
whatever zlib is there.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

WINDOW = 32768  # how far back a repetition may point
LONGEST = 258
GRAMS = (20, 10, 6, 4, 3)  # repetitions are looked up by their first bytes, the longest first
FAR = 4096  # three bytes are not worth pointing farther back
PATIENCE = 16  # a repetition this long is taken without a look at the next byte
END = 256
ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)

Symbol = tuple[int, int, int]  # a code's number, then how many extra bits, and their value
Token = int | tuple[int, int]  # a byte, or a repetition: how long, how far back
Table = tuple[int, dict[bytes, int], dict[bytes, int]]  # a size, and where each run of it was last


def _symbols(first: int, extras: Iterable[int]) -> list[Symbol]:
    """The symbol of every value in turn: each code stands for 2**extra of them."""
    return [
        (code, extra, value)
        for code, extra in enumerate(extras, first)
        for value in range(1 << extra)
    ]


LENGTHS = [*_symbols(257, (0,) * 8 + tuple(e for e in range(1, 6) for _ in range(4)))][:255]
LENGTHS.append((285, 0, 0))  # the longest has a code of its own
DISTANCES = _symbols(0, (0, 0, *(e for e in range(14) for _ in range(2))))


def deflate(content: bytes, common: bytes = b"") -> bytes:
    """Pack a text, given the text that zlib's decompressobj gets as zdict."""
    tokens = _tokens(content, common[-WINDOW:])
    symbols = [part for token in tokens for part in _coded(token)]
    return _as_bytes(_block(symbols))


@functools.cache
def _places(text: bytes, size: int) -> dict[bytes, int]:
    """Where each run of so many bytes begins for the last time."""
    return {text[at : at + size]: at for at in range(len(text) - size + 1)}


def _tokens(content: bytes, common: bytes) -> list[Token]:
    """Bytes and repetitions; one that begins a byte later is preferred where it is longer."""
    text, at = common + content, len(common)
    tables: list[Table] = [(size, _places(common, size), {}) for size in GRAMS]
    tokens: list[Token] = []
    found = _longest(text, at, tables)
    while at < len(text):
        length, place = found
        for size, _, new in tables:
            new[text[at : at + size]] = at
        later = _longest(text, at + 1, tables) if length < PATIENCE else (0, 0)
        if not length or later[0] > length:
            tokens.append(text[at])
            at, found = at + 1, later
            continue
        tokens.append((length, at - place))
        passed = range(at + 1, at + length)
        for size, _, new in tables:
            new.update({text[start : start + size]: start for start in passed})
        at += length
        found = _longest(text, at, tables)
    return tokens


def _longest(text: bytes, at: int, tables: Sequence[Table]) -> tuple[int, int]:
    """How long the text from here was there before, and where; (0, 0) if it was not."""
    most = min(LONGEST, len(text) - at)
    for size, old, new in tables:
        gram = text[at : at + size]
        place = new.get(gram)
        if place is None:
            place = old.get(gram, -1)
        if place < 0 or size > most or at - place > (WINDOW if size > 3 else FAR):
            continue
        length = size
        while length < most and text[place + length] == text[at + length]:
            length += 1
        return length, place
    return 0, 0


def _coded(token: Token) -> tuple[tuple[bool, Symbol], ...]:
    """A token's symbols, each with whether it is a distance."""
    if isinstance(token, int):
        return ((False, (token, 0, 0)),)
    length, distance = token
    return (False, LENGTHS[length - 3]), (True, DISTANCES[distance - 1])


def _block(symbols: Sequence[tuple[bool, Symbol]]) -> list[str]:
    """The bits of the only block, whose codes fit these symbols."""
    counts = Counter((far, symbol[0]) for far, symbol in symbols)
    literals = _code_lengths({END: 1, **{c: n for (far, c), n in counts.items() if not far}}, 15)
    distances = _code_lengths({c: n for (far, c), n in counts.items() if far} or {0: 1}, 15)
    both = [literals.get(code, 0) for code in range(max(literals) + 1)]
    size = len(both)
    both += [distances.get(code, 0) for code in range(max(distances) + 1)]
    runs = _runs(both)
    kinds = _code_lengths(Counter(run[0] for run in runs), 7)
    used = [kinds.get(kind, 0) for kind in ORDER]
    while len(used) > 4 and not used[-1]:
        used.pop()
    bits = ["1", "01", _bits(size - 257, 5), _bits(len(both) - size - 1, 5)]
    bits += [_bits(len(used) - 4, 4)]
    bits += [_bits(length, 3) for length in used]
    codes = _codes(kinds)
    bits += [codes[kind] + _bits(value, extra) for kind, extra, value in runs]
    near, far = _codes(literals), _codes(distances)
    for is_far, (code, extra, value) in symbols:
        bits.append((far if is_far else near)[code] + (_bits(value, extra) if extra else ""))
    return [*bits, near[END]]


def _runs(lengths: Sequence[int]) -> list[Symbol]:
    """The list of code lengths, what repeats in it shortened."""
    runs: list[Symbol] = []
    at = 0
    while at < len(lengths):
        value = lengths[at]
        count = next((n for n, v in enumerate(lengths[at:]) if v != value), len(lengths) - at)
        at += count
        if value:
            runs.append((value, 0, 0))
            count -= 1
        while count >= 3:
            kind, extra, least, most = (16, 2, 3, 6) if value else (18, 7, 11, 138)
            if not value and count < 11:
                kind, extra, least, most = 17, 3, 3, 10
            taken = min(count, most)
            runs.append((kind, extra, taken - least))
            count -= taken
        runs += [(value, 0, 0)] * count
    return runs


def _code_lengths(counts: Mapping[int, int], limit: int) -> dict[int, int]:
    """How long each code should be, at most `limit` bits, by package-merge; one code gets a bit."""
    leaves = sorted((count, (code,)) for code, count in counts.items())
    if len(leaves) == 1:
        return dict.fromkeys(leaves[0][1], 1)
    packages: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(limit):
        row = sorted([*leaves, *packages], key=lambda package: package[0])
        pairs = zip(row[::2], row[1::2], strict=False)
        packages = [(one[0] + two[0], one[1] + two[1]) for one, two in pairs]
    return dict(Counter(code for _, codes in packages[: len(leaves) - 1] for code in codes))


def _codes(lengths: Mapping[int, int]) -> dict[int, str]:
    """The codes of these lengths that every reader of the format makes too."""
    codes: dict[int, str] = {}
    code = before = 0
    for length, symbol in sorted((length, symbol) for symbol, length in lengths.items()):
        code <<= length - before
        codes[symbol] = f"{code:0{length}b}"
        code, before = code + 1, length
    return codes


def _bits(value: int, count: int) -> str:
    """A number's bits, the lowest first, as the format writes all but codes."""
    return f"{value:0{count}b}"[::-1] if count else ""


def _as_bytes(bits: Sequence[str]) -> bytes:
    line = "".join(bits)
    return int(line[::-1], 2).to_bytes((len(line) + 7) // 8, "little")
