"""Writes a model that llama.cpp loads: the llama architecture, random weights, made-up words. Called by `llama_server`.

It speaks words such as "mafa dogo gaba" and never ends by itself, so a reply lasts as long as the context.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

# Sized for about 5 ms a token on one thread, so that a stop lands in the middle of a reply; some 90 MB.
LAYERS = 6
WIDTH = 768
FEED_FORWARD_WIDTH = 2048
HEADS = 12
CONTEXT_TOKENS = 8192
SEED = 0

END_BIAS = -8.0  # of the end token against the words: never drawn
SUPPRESSED = -20.0
MARKER_VALUE = 4.0  # of channel 0, the same in every embedding, on which the output layer leans

WORD_START = "\u2581"
CONTROL_TOKENS = ["<unk>", "<s>", "</s>"]
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"

Weights = NDArray[np.float16]


def write_tiny_gguf(path: Path) -> None:
    """Write the model to `path`. The same every time."""
    tokens, word_count = _vocabulary()
    writer = gguf.GGUFWriter(str(path), "llama")
    _add_shape(writer, len(tokens))
    _add_tokenizer(writer, tokens)
    random = np.random.default_rng(SEED)
    _add_outer_layers(writer, random, len(tokens), word_count)
    for layer in range(LAYERS):
        _add_layer(writer, random, f"blk.{layer}.")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _vocabulary() -> tuple[list[str], int]:
    """All tokens, and how many at their end are words."""
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    letters = [WORD_START, *"abcdefghijklmnopqrstuvwxyz.,!?"]
    words = [f"{WORD_START}{a}{b}{c}{d}" for a in CONSONANTS for b in VOWELS for c in "bdfgkl" for d in VOWELS][:1000]
    return [*CONTROL_TOKENS, *byte_tokens, *letters, *words], len(words)


def _add_shape(writer: gguf.GGUFWriter, token_count: int) -> None:
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD_WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(token_count)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def _add_tokenizer(writer: gguf.GGUFWriter, tokens: list[str]) -> None:
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    normal_count = len(tokens) - len(kinds)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(kinds) + [-float(rank) for rank in range(normal_count)])
    writer.add_token_types([*kinds, *[gguf.TokenType.NORMAL] * normal_count])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(True)
    writer.add_chat_template(CHAT_TEMPLATE)


def _add_outer_layers(writer: gguf.GGUFWriter, random: np.random.Generator, token_count: int, word_count: int) -> None:
    embedding = random.standard_normal((token_count, WIDTH), dtype=np.float32)
    embedding[:, 0] = MARKER_VALUE
    output = random.standard_normal((token_count, WIDTH), dtype=np.float32) * 0.3
    # What channel 0 is worth after the last RMS norm, so that the biases below come out as logits.
    gain = MARKER_VALUE / np.sqrt((MARKER_VALUE**2 + WIDTH - 1) / WIDTH)
    output[:, 0] = SUPPRESSED / gain
    output[token_count - word_count :, 0] = 0.0
    output[2, 0] = END_BIAS / gain
    writer.add_tensor("token_embd.weight", embedding.astype(np.float16))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", output.astype(np.float16))


def _add_layer(writer: gguf.GGUFWriter, random: np.random.Generator, prefix: str) -> None:
    for norm in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"{prefix}{norm}.weight", np.ones(WIDTH, np.float32))
    for name in ("attn_q", "attn_k", "attn_v"):
        writer.add_tensor(f"{prefix}{name}.weight", _weights(random, WIDTH, WIDTH))
    for name in ("ffn_gate", "ffn_up"):
        writer.add_tensor(f"{prefix}{name}.weight", _weights(random, FEED_FORWARD_WIDTH, WIDTH))
    for name, inputs in (("attn_output", WIDTH), ("ffn_down", FEED_FORWARD_WIDTH)):
        weights = _weights(random, WIDTH, inputs, scale=0.3)
        weights[0, :] = 0  # channel 0 stays what the embedding made it
        writer.add_tensor(f"{prefix}{name}.weight", weights)


def _weights(random: np.random.Generator, outputs: int, inputs: int, *, scale: float = 1.0) -> Weights:
    spread = np.float32(scale / np.sqrt(inputs))
    return (random.standard_normal((outputs, inputs), dtype=np.float32) * spread).astype(np.float16)
