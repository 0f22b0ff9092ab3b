"""onnxruntime, with its inputs and outputs bound once to memory of our own."""

import numpy as np
import onnxruntime

from .onnx_graph import write_graph
from .peer import Peer


class OnnxRuntime(Peer):
    """One session; a step writes a token and its position into bound buffers and runs."""

    note = "fused operators, cache updated in place, outputs bound"

    @staticmethod
    def prepare(model, network, folder):
        tensors = network.transformer.state_dict()
        state = {name: tensor.numpy() for name, tensor in tensors.items()}
        write_graph(model, state, folder / "model.onnx")

    def __init__(self, model, folder, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        path = str(folder / "model.onnx")
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(path, options, providers=providers)
        self.model = model

    def bind(self, batch, width):
        """Bind the inputs of one width to buffers; the caches are past and present at once."""
        binding = self.session.io_binding()
        sizes = {"token_ids": (batch, width), "positions": (batch, width)}
        arrays = {name: np.zeros(size, np.int64) for name, size in sizes.items()}
        arrays |= {"last_position": np.zeros(batch, np.int32)}
        arrays |= {"total_length": np.zeros(1, np.int32)}
        for name, array in arrays.items():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(name, value)
            arrays[name] = value.numpy() if value.data_ptr() != array.ctypes.data else array
        for name, value in self.caches.items():
            binding.bind_ortvalue_input(f"past_{name}", value)
            binding.bind_ortvalue_output(f"present_{name}", value)
        binding.bind_ortvalue_output("logits", self.logits_value)
        return binding, arrays

    def begin(self, prompts, steps):
        batch, width = prompts.shape
        model = self.model
        size = (batch, model.n_heads, width + steps, model.d_head)
        parts = [f"{part}.{i}" for i in range(model.n_layers) for part in ("key", "value")]
        self.slabs = {part: np.zeros(size, np.float32) for part in parts}
        as_value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.caches = {part: as_value(slab) for part, slab in self.slabs.items()}
        self.logits = np.empty((batch, model.vocab_size), np.float32)
        self.logits_value = as_value(self.logits)
        self.length = 0
        self.binding, self.arrays = self.bind(batch, width)
        self.run(prompts)
        self.binding, self.arrays = self.bind(batch, 1)
        return self.logits

    def run(self, token_ids):
        width = token_ids.shape[1]
        self.arrays["token_ids"][:] = token_ids
        self.arrays["positions"][:] = np.arange(self.length, self.length + width)
        self.length += width
        self.arrays["last_position"][:] = self.length - 1
        self.arrays["total_length"][:] = self.length
        self.session.run_with_iobinding(self.binding)

    def step(self, tokens):
        self.run(tokens[:, None])
        return self.logits
