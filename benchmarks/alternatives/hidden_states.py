"""Hidden states probed, layer by layer.

All give the same states (what the run compares is the probes' errors), so the question is what is done with them.
nnsight and TransformerLens are the better choice as soon as the states in between are wanted, of one head or before an
addition, or are to be changed and the pass to go on. The probe is scikit-learn's or posembed's, whatever handed the
states out: `probe_layers` takes them as tensors too. Its control, with positions dealt at random, is left out here,
because the others have none; it takes as long again.
"""

import torch

from .read_table import given as folder

ABSENT = {
    "x_transformers": "states of its own models (`return_hiddens=True`), which this one is not; then as transformers",
    "rotary_embedding_torch": "rotations alone",
    "plain": "the probe of the other cells; the states by hooks of torch, as transformers hands them out",
}


def given(quick):
    """The folder of all-MiniLM-L6-v2, and texts of random words."""
    torch.manual_seed(0)
    return *folder(quick), torch.randint(
        1000, 30000, (8, 16) if quick else (96, 64)
    )


def posembed(folder, ids):
    """For each layer an error on other texts with its interval, by position too, and as the share that is exact."""
    from transformers import AutoModel

    from posembed import probe_layers

    return [
        layer.mae
        for layer in probe_layers(
            AutoModel.from_pretrained(folder), ids, steps=100, control=False
        ).layers
    ]


def transformers(folder, ids):
    """The states that layers end with; by scikit-learn an error for each, no control and no interval."""
    import torch
    from transformers import AutoModel

    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(
            ids, output_hidden_states=True
        ).hidden_states
    return _errors(states)


def transformer_lens(folder, ids):
    """Every state that has a name in it; by scikit-learn an error for each that is asked for."""
    import torch
    from transformer_lens.model_bridge import TransformerBridge

    bridge = TransformerBridge.boot_transformers(str(folder), device="cpu")
    with torch.no_grad():
        _, kept = bridge.run_with_cache(ids)
    return _errors(
        [
            kept["blocks.0.hook_in"],
            *(kept[f"blocks.{i}.hook_out"] for i in range(bridge.cfg.n_layers)),
        ]
    )


def nnsight(folder, ids):
    """Any value inside the model; by scikit-learn an error for each that is asked for."""
    import nnsight
    import torch
    from transformers import AutoModel

    model = nnsight.NNsight(AutoModel.from_pretrained(folder))
    with torch.no_grad(), model.trace(ids):
        states = nnsight.save(
            [
                model.embeddings.output,
                *(layer.output for layer in model.encoder.layer),
            ]
        )
    return _errors(states)


def _errors(states):
    import numpy as np
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    texts, length, errors = len(states[0]), states[0].shape[1], []
    n_train, positions = texts - texts // 4, np.tile(np.arange(length), texts)
    for layer in states:
        x, at = layer.flatten(0, 1).numpy(), n_train * length
        probe = MLPClassifier(
            128,
            batch_size=min(512, at),
            learning_rate_init=1e-2,
            max_iter=11,
            random_state=0,
        )
        probe = make_pipeline(StandardScaler(), probe).fit(
            x[:at], positions[:at]
        )
        errors.append(float(abs(probe.predict(x[at:]) - positions[at:]).mean()))
    return errors


def shown(errors, _):
    """Errors in positions."""
    return f"{errors[0]:.1f} positions off in the embeddings, {errors[-1]:.1f} in the last layer"


def agree(answers, inputs):
    """Every probe finds the positions in some layer: half as far off as the middle of the text, or less."""
    if len(inputs[1]) > 8:
        assert all(
            min(errors) < inputs[1].shape[1] / 8 for errors in answers.values()
        )
