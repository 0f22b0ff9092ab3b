"""The best rate at which this machine can be made to read memory, over as many bytes as a step.

Each of the threads reads its own part, by two methods whose arithmetic costs nothing beside the
reading: the dot product of an array with itself, and a row vector times a wide matrix. On the
machine where this was written both come to what a C loop with prefetch and wide loads reaches.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

ROW = 768  # rows of the wide matrix
REPEATS = 7


class Memory:
    """Not a peer of the decoders, but a worker among them: it is asked in the same rounds.

    Its process runs BLAS with one thread; the threads are its own.
    """

    note = "best of dot(a, a) and row @ matrix, one part a thread"
    largest_batch = 1000
    prepare = staticmethod(lambda model, network, folder: None)

    def __init__(self, model, folder, threads):
        size = model.weight_bytes // 4 // threads // ROW * ROW
        self.parts = [np.ones(size, np.float32) for _ in range(threads)]
        self.row = np.ones(ROW, np.float32)
        self.outputs = [np.empty(size // ROW, np.float32) for _ in range(threads)]
        self.pool = ThreadPoolExecutor(threads)

    def measure(self):
        """Return bytes per second by method, the best of some repeats."""
        total = sum(part.nbytes for part in self.parts)
        matrices = [part.reshape(ROW, -1) for part in self.parts]

        def dot(i):
            np.dot(self.parts[i], self.parts[i])

        def gemv(i):
            np.dot(self.row, matrices[i], out=self.outputs[i])

        rates = {"dot": 0.0, "gemv": 0.0}
        for _ in range(REPEATS):
            for name, read in (("dot", dot), ("gemv", gemv)):
                start = perf_counter()
                list(self.pool.map(read, range(len(self.parts))))
                rates[name] = max(rates[name], total / (perf_counter() - start))
        return rates
