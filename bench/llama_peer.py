"""llama.cpp in float32: weights, cache and attention, through its C interface."""

import ctypes

import llama_cpp.llama_cpp as llama
import numpy as np

from .peer import Peer

F32 = 0  # GGML_TYPE_F32
NO_FLASH = 0  # its flash attention computes in half precision, whatever the cache holds
NAMES = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def gguf_tensors(state, n_layers):
    """Pair llama.cpp's names with the checkpoint's tensors; it wants weights [d_out, d_in]."""
    yield "token_embd.weight", state["wte.weight"]
    yield "position_embd.weight", state["wpe.weight"]
    for part in ("weight", "bias"):
        yield f"output_norm.{part}", state[f"ln_f.{part}"]
        for layer in range(n_layers):
            for theirs, name in NAMES.items():
                tensor = state[f"h.{layer}.{theirs}.{part}"]
                yield f"blk.{layer}.{name}.{part}", tensor.T if tensor.ndim == 2 else tensor


class LlamaCpp(Peer):
    """One batch a step; a row of the batch is one of its sequences."""

    tolerance = 1e-2  # its tanh-GELU is a table of half-precision numbers
    note = "float32 weights, cache and attention; only its GELU is a half-precision table"

    @staticmethod
    def prepare(model, network, folder):
        from gguf import GGUFWriter

        writer = GGUFWriter(folder / "model.gguf", "gpt2")
        writer.add_context_length(model.context_length)
        writer.add_embedding_length(model.d_model)
        writer.add_feed_forward_length(4 * model.d_model)
        writer.add_block_count(model.n_layers)
        writer.add_head_count(model.n_heads)
        writer.add_layer_norm_eps(1e-5)
        writer.add_tokenizer_model("none")
        writer.add_vocab_size(model.vocab_size)
        tensors = network.transformer.state_dict()
        state = {name: tensor.numpy() for name, tensor in tensors.items()}
        for name, tensor in gguf_tensors(state, model.n_layers):
            writer.add_tensor(name, np.ascontiguousarray(tensor))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def __init__(self, model, folder, threads):
        self.vocab_size, self.threads, self.room = model.vocab_size, threads, model.room
        self.quiet = llama.llama_log_callback(lambda level, text, data: None)
        llama.llama_log_set(self.quiet, ctypes.c_void_p(0))
        llama.llama_backend_init()
        path = str(folder / "model.gguf").encode()
        self.network = llama.llama_model_load_from_file(path, llama.llama_model_default_params())
        if not self.network:
            raise ValueError("llama.cpp does not accept the GGUF file")
        self.context, self.rows, self.batch = None, 0, None

    def make_context(self, rows):
        """Make a context for so many sequences, and a batch that holds all of their prompts."""
        if self.context:
            llama.llama_free(self.context)
            llama.llama_batch_free(self.batch)
        wanted = llama.llama_context_default_params()
        wanted.n_ctx = wanted.n_batch = rows * -(-self.room // 256) * 256
        wanted.n_seq_max = rows
        wanted.n_threads = wanted.n_threads_batch = self.threads
        wanted.type_k = wanted.type_v = F32
        wanted.flash_attn_type = NO_FLASH
        self.context = llama.llama_init_from_model(self.network, wanted)
        if not self.context:
            raise ValueError(f"llama.cpp makes no context for {rows} sequences")
        self.batch, self.rows = llama.llama_batch_init(rows * self.room, 0, 1), rows

    def begin(self, prompts, steps):
        if len(prompts) != self.rows:
            self.make_context(len(prompts))
        llama.llama_memory_clear(llama.llama_get_memory(self.context), True)
        self.length = 0
        return self.read(prompts)

    def step(self, tokens):
        return self.read(tokens[:, None])

    def read(self, token_ids):
        """Read the tokens [B, width]; logits of the last column only."""
        rows, width = token_ids.shape
        batch, entry = self.batch, 0
        batch.n_tokens = rows * width
        for row, tokens in enumerate(token_ids.tolist()):
            for column, token in enumerate(tokens):
                batch.token[entry], batch.pos[entry] = token, self.length + column
                batch.n_seq_id[entry], batch.seq_id[entry][0] = 1, row
                batch.logits[entry] = column == width - 1
                entry += 1
        code = llama.llama_decode(self.context, batch)
        if code != 0:
            raise ValueError(f"llama_decode returned {code}")
        self.length += width
        pointer = llama.llama_get_logits(self.context)
        return np.ctypeslib.as_array(pointer, shape=(rows, self.vocab_size))
