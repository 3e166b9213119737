"""Sizes that are too large for `posembed.train`: one for a GPU, and those of Haviv et al. (2022)."""

# About 27 million parameters, 25 of them in the layers, and 213 million tokens read: minutes on a fast GPU. The text is
# the file enwik8, the first hundred million bytes of Wikipedia.
GPU = {
    "text": "enwik8",
    "vocab_size": 4096,
    "length": 512,
    "n_layers": 8,
    "d_model": 512,
    "n_heads": 8,
    "batch_size": 64,
    "steps": 6500,
    "optimizer": "adamw",
    "betas": (0.9, 0.95),
    "learning_rate": 1e-3,
    "lowest_rate": 0.1,
    "warmup": 300,
    "weight_decay": 0.1,
    "dropout": 0.0,
    "largest_gradient": 1.0,
    "accumulate": 1,
}
# Baevski and Auli's model and recipe (fairseq's transformer_lm_wiki103) in shorter pieces; the paper's table 5 and its
# authors' scripts: 18 pieces on each of eight GPUs. Of the betas NAG takes the first, fairseq's momentum. Logits are a
# plain softmax here, and dropout has one rate.
WIKITEXT = {
    "text": "Salesforce/wikitext:wikitext-103-raw-v1",
    "vocab_size": 32_768,
    "length": 512,
    "n_layers": 16,
    "d_model": 1024,
    "n_heads": 8,
    "batch_size": 144,
    "steps": 286_000,
    "optimizer": "nag",
    "betas": (0.99, 0.999),
    "learning_rate": 1.0,
    "lowest_rate": 1e-4,
    "warmup": 16_000,
    "weight_decay": 0.0,
    "dropout": 0.3,
    "largest_gradient": 0.1,
    "accumulate": 1,
}
# The paper's tables 5 and 6: GPT-3's sizes, GPT-2's number of tokens in the vocabulary, 256 thousand tokens a step; a
# thousand is 1024, by the scripts. Of the scripts are also the betas and the end of the rate, zero; they let it fall in
# a straight line and cut no gradients: the cosine and the largest gradient are ours. The Pile itself is not offered any
# more; this is it without the parts under copyright. A step is taken in parts, for the memory of a GPU.
PILE = WIKITEXT | {
    "text": "monology/pile-uncopyrighted",
    "vocab_size": 50_257,
    "length": 1024,
    "batch_size": 256,
    "steps": 10_000,
    "optimizer": "adamw",
    "betas": (0.9, 0.98),
    "learning_rate": 2e-3,
    "lowest_rate": 0.0,
    "warmup": 500,
    "weight_decay": 0.01,
    "dropout": 0.0,
    "largest_gradient": 1.0,
}
LARGEST = PILE | {"n_layers": 24, "d_model": 2048, "n_heads": 32, "accumulate": 16}

PRESETS = {
    "gpu": GPU,
    "paper-wikitext": WIKITEXT,
    "paper-125M": PILE | {"n_layers": 12, "d_model": 768, "n_heads": 12, "accumulate": 8},
    "paper-350M": PILE | {"n_layers": 24, "d_model": 1024, "n_heads": 16, "accumulate": 8},
    "paper-760M": PILE | {"n_layers": 24, "d_model": 1536, "n_heads": 16, "accumulate": 16},
    "paper-1.3B": LARGEST,
    **{
        f"paper-1.3B-{length}": LARGEST | {"length": length, "batch_size": 2**18 // length}
        for length in (256, 512, 2048)
    },
}
