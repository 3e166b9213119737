"""Ten tasks in posembed and in the libraries that one could take instead: `python -m benchmarks.alternatives`.

A task is a module: its docstring is its section of the page, `given` makes what all functions of it are given, the
function of a library does the task as a user of that library would, its docstring says what one gets, and `ABSENT` says
why a library has none. `shown` is the number on the page, `agree` asserts what all answers have in common.
"""

from . import (
    bias_in_attention,
    controls,
    hidden_states,
    order,
    own_scheme,
    read_table,
    rope_on_q_and_k,
    scheme_in_gpt2,
    small_study,
    three_properties,
)

TASKS = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        order,
        read_table,
        controls,
        three_properties,
        rope_on_q_and_k,
        bias_in_attention,
        scheme_in_gpt2,
        own_scheme,
        hidden_states,
        small_study,
    )
}
# The function's name, the package on PyPI that it needs, and what it cannot be asked for, where a task says no more.
LIBRARIES = {
    "posembed": ("posembed", ""),
    "transformers": (
        "transformers",
        "nothing for this: models, and what trains them",
    ),
    "x_transformers": (
        "x-transformers",
        "nothing for this: layers, and models built of them",
    ),
    "rotary_embedding_torch": ("rotary-embedding-torch", "rotations alone"),
    "transformer_lens": (
        "transformer-lens",
        "nothing for this: it looks into models, and changes what happens there",
    ),
    "nnsight": (
        "nnsight",
        "nothing for this: it looks into models, and changes what happens there",
    ),
    "plain": ("torch and scikit-learn", "nothing for this"),
}
