"""Writes a Llama model as a GGUF file for llama.cpp; needs the package `gguf`.

Input: a path, and a folder in Hugging Face's format (by default the embedded target model). Output: the file
in float32, 9 MB for the embedded model. Time: 0.1 s.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from structgen.lm import embedded
from structgen.lm.safetensors_file import read

_LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def write(path: Path, chat_template: str | None = None, folder: Path | None = None) -> None:
    """Writes the model. The file has the tokenizer's pieces, so its ids equal structgen's."""
    folder = folder or embedded.path("target")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    for add in (writer.add_rope_dimension_count, writer.add_key_length, writer.add_value_length):
        add(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _vocabulary(writer, tokenizer, config)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    for name, values in read(folder / "model.safetensors").items():
        part = name.removesuffix(".weight")
        tensor = np.ascontiguousarray(values, np.float32)
        if part in _TOP:
            writer.add_tensor(_TOP[part] + ".weight", tensor)
            continue
        number, _, rest = part.removeprefix("model.layers.").partition(".")
        if rest.endswith(("q_proj", "k_proj")):
            tensor = _interleaved(tensor, config["num_attention_heads"])
        writer.add_tensor(f"blk.{number}.{_LAYER[rest]}.weight", tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _vocabulary(writer: Any, tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    pieces = [f"[hole {i}]" for i in range(config["vocab_size"])]
    kinds = [gguf.TokenType.UNUSED] * len(pieces)
    for piece, index in tokenizer["model"]["vocab"].items():
        pieces[index], kinds[index] = piece, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        pieces[added["id"]] = added["content"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)


def _interleaved(tensor: Any, heads: int) -> Any:
    """Converts rotary halves (Hugging Face) to neighbouring pairs (llama.cpp)."""
    rows, columns = tensor.shape
    halves = tensor.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(tensor.shape))
