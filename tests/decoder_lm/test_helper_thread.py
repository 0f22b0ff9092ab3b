"""A crew that is interrupted at any instruction works on: tried in a process that may hang."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED = """
import sys, time
from course_lib.decoder_lm.helper_thread import Crew

def interrupted_at(number, call):
    '''Raise KeyboardInterrupt in this thread before its instruction of that number.'''
    seen = 0
    def trace(frame, event, argument):
        nonlocal seen
        frame.f_trace_opcodes = True
        seen += event in ("opcode", "return")
        if seen == number:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)

for pause in (0.0, 0.003):  # the threads still look for work; the threads sleep
    crew, number, cut = Crew(2), 0, True
    crew.run(lambda part: None)
    while cut:
        number, cut = number + 1, False
        time.sleep(pause)
        try:
            interrupted_at(number, lambda: crew.run(lambda part: None))
        except KeyboardInterrupt:
            cut = True
        done = []
        crew.run(done.append)
        assert sorted(done) == [0, 1], (pause, number, done)
    print(number)
"""


@pytest.mark.skipif(sys.gettrace() is not None, reason="another program is tracing")
def test_an_interrupt_at_any_instruction_leaves_a_crew_that_works():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    counts = [int(line) for line in done.stdout.split()]
    assert len(counts) == 2
    assert min(counts) > 50  # so many instructions were interrupted, one after another
