"""GPT-2 as an ONNX graph with a key-value cache, out of onnxruntime's own fused operators.

Every projection is a Gemm with its bias, the residual sum and the norm are one operator, the
tanh-GELU another. GroupQueryAttention (with as many key heads as heads) writes into the cache in
place when its past and its present are bound to the same memory, so nothing is copied.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FUSED = "com.microsoft"


class Graph:
    """Nodes and weights under construction; every method returns the name of its output."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, name, tensor):
        self.weights.append(numpy_helper.from_array(np.asarray(tensor, order="C"), name))
        return name

    def node(self, operator, inputs, outputs, domain="", **attributes):
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def linear(self, name, x, state):
        weight = self.weight(f"{name}.weight", state[f"{name}.weight"])
        bias = self.weight(f"{name}.bias", state[f"{name}.bias"])
        return self.node("Gemm", [x, weight, bias], [f"{name}.out"])

    def norm_of_sum(self, name, x, change, state):
        """Return LayerNorm(x + change) and x + change."""
        gain = self.weight(f"{name}.weight", state[f"{name}.weight"])
        bias = self.weight(f"{name}.bias", state[f"{name}.bias"])
        outputs = [f"{name}.out", "", "", f"{name}.sum"]
        inputs = [x, change, gain, bias]
        self.node("SkipLayerNormalization", inputs, outputs, FUSED, epsilon=1e-5)
        return outputs[0], outputs[3]


def attention(graph, name, x, layer, model, state):
    """Project, attend to the cache of this layer in place, project back."""
    qkv = graph.linear(f"{name}.c_attn", x, state)  # [B T, 3 d]
    packed = graph.node("Reshape", [qkv, "packed_shape"], [f"{name}.packed"])  # [B, T, 3 d]
    caches = [f"past_key.{layer}", f"past_value.{layer}"]
    presents = [f"present_key.{layer}", f"present_value.{layer}"]
    mixed = graph.node(
        "GroupQueryAttention",
        [packed, "", "", *caches, "last_position", "total_length"],
        [f"{name}.mixed", *presents],
        FUSED,
        num_heads=model.n_heads,
        kv_num_heads=model.n_heads,
    )
    flat = graph.node("Reshape", [mixed, "flat_shape"], [f"{name}.flat"])  # [B T, d]
    return graph.linear(f"{name}.c_proj", flat, state)


def write_graph(model, state, path):
    """Write the graph: token_ids and positions [B, T] in, logits [B, V] of the last position out.

    state: the checkpoint's tensors as arrays, under transformers' names without "transformer.".
    """
    graph, d = Graph(), model.d_model
    graph.weight("flat_shape", np.array([-1, d]))
    sizes = graph.node("Shape", ["token_ids"], ["sizes"])
    width = graph.weight("width_qkv", np.array([3 * d]))
    graph.node("Concat", [sizes, width], ["packed_shape"], axis=0)
    table = graph.weight("wte", state["wte.weight"])
    places = graph.weight("wpe", state["wpe.weight"])
    token = graph.node("Gather", [table, "token_ids"], ["token"])
    place = graph.node("Gather", [places, "positions"], ["place"])
    x = graph.node("Reshape", [token, "flat_shape"], ["x"])
    change = graph.node("Reshape", [place, "flat_shape"], ["change"])
    for layer in range(model.n_layers):
        name = f"h.{layer}"
        normed, x = graph.norm_of_sum(f"{name}.ln_1", x, change, state)
        change = attention(graph, f"{name}.attn", normed, layer, model, state)
        normed, x = graph.norm_of_sum(f"{name}.ln_2", x, change, state)
        hidden = graph.linear(f"{name}.mlp.c_fc", normed, state)
        hidden = graph.node("FastGelu", [hidden], [f"{name}.gelu"], FUSED)
        change = graph.linear(f"{name}.mlp.c_proj", hidden, state)
    normed, _ = graph.norm_of_sum("ln_f", x, change, state)
    hidden_shape = graph.weight("width", np.array([d]))
    graph.node("Concat", [sizes, hidden_shape], ["hidden_shape"], axis=0)
    hidden = graph.node("Reshape", [normed, "hidden_shape"], ["hidden"])  # [B, T, d]
    last = graph.weight("last", np.array(-1))
    final = graph.node("Gather", [hidden, last], ["final"], axis=1)  # [B, d]
    unembedding = graph.weight("unembedding", state["wte.weight"].T)
    graph.node("MatMul", [final, unembedding], ["logits"])
    save(graph, model, path)


def save(graph, model, path):
    """Declare inputs and outputs and write the model, the weights in a file beside it."""

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    cache = ["B", model.n_heads, "S", model.d_head]
    integers = [("last_position", TensorProto.INT32, ["B"])]
    integers += [("total_length", TensorProto.INT32, [1])]
    integers += [(name, TensorProto.INT64, ["B", "T"]) for name in ("token_ids", "positions")]
    parts = [f"{part}.{i}" for i in range(model.n_layers) for part in ("key", "value")]
    inputs = [value(*entry) for entry in integers]
    inputs += [value(f"past_{part}", TensorProto.FLOAT, cache) for part in parts]
    outputs = [value("logits", TensorProto.FLOAT, ["B", model.vocab_size])]
    outputs += [value(f"present_{part}", TensorProto.FLOAT, cache) for part in parts]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "gpt2", inputs, outputs, graph.weights),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)],
        ir_version=9,
    )
    onnx.save(made, path, save_as_external_data=True, location=path.name + ".data")
