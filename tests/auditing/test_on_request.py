"""What is checked where it is asked for: a model that is made on the meta device, and one that is exported."""

import re

import pytest
import torch
from port import VOCABULARY, Port
from right_models import right

from posembed import Transformer, TransformerConfig, audit

ON_META, EXPORTED = "made on the meta device", "exported, at another length"


class Kept(Port):
    """A port whose speeds are computed when it is made.

    Args:
        persistent: whether they are saved with the weights.
    """

    def __init__(self, persistent):
        super().__init__()
        self.register_buffer("speeds", 100.0 ** -(torch.arange(4) / 4), persistent)

    def turned(self, x, positions):
        angles = positions[:, None, :, None] * self.speeds
        one, two = x.chunk(2, -1)
        return torch.cat([one * angles.cos() - two * angles.sin(), two * angles.cos() + one * angles.sin()], -1)


class OtherwiseExported(Port):
    """A port that forgets its positions while it is exported."""

    def positions(self, ids, positions, mask, past):
        made = super().positions(ids, positions, mask, past)
        return made * 0 if torch.compiler.is_exporting() else made


def found(model, name, **asked):
    known = {} if hasattr(model, "config") else {"vocab_size": VOCABULARY, "causal": True, "relative": True}
    (result,) = [each for each in audit(model, **known, **asked).checks if each.check == name]
    return result


def shown(result, capsys, model, make=None):
    """What the script prints."""
    assert len(result.script.splitlines()) < 12
    code = re.sub(r"^(model|make) = .*$|torch.set_grad_enabled.*", "", result.script, flags=re.MULTILINE)
    with torch.no_grad():
        exec(compile(code, "script", "exec"), {"model": model.eval(), "make": make})
    return float(re.search(r"tensor\((.*?)[,)]", capsys.readouterr().out).group(1))


def test_neither_is_in_a_report_that_does_not_ask():
    report = audit(Port(), vocab_size=VOCABULARY)
    assert not {ON_META, EXPORTED} & {each.check for each in report.checks}


class TestOnTheMetaDevice:
    def test_what_is_saved_with_the_weights_is_there_again(self):
        assert found(Kept(True), ON_META, make=lambda: Kept(True)).verdict == "holds"

    def test_a_buffer_that_is_not_persistent_is_lost(self, capsys):
        model = Kept(False)
        result = found(model, ON_META, make=lambda: Kept(False))
        assert (result.verdict, result.position) == ("broken", 0)
        assert "not persistent" in result.kind
        assert shown(result, capsys, model, lambda: Kept(False)) > 1e-3

    def test_ours_can_be_made_there(self):
        config = TransformerConfig(50, n_layers=1, scheme="rope", weight_std=0.3)
        assert found(Transformer(config), ON_META, make=lambda: Transformer(config)).verdict == "holds"

    def test_transformers_makes_its_angles_anew_by_a_way_of_its_own(self):
        model = right("LlamaForCausalLM")
        assert found(model, ON_META, make=lambda: right("LlamaForCausalLM")).verdict == "broken"
        assert found(model, "saved and loaded").verdict == "holds"


@pytest.mark.slow
class TestExported:
    @pytest.mark.parametrize("model", [Port(), Port(scheme="table"), right("GPT2LMHeadModel")])
    def test_another_length_is_right(self, model):
        assert found(model, EXPORTED, exported=True).verdict == "holds"

    def test_a_model_that_is_exported_as_another_one(self, capsys):
        model = OtherwiseExported()
        result = found(model, EXPORTED, exported=True)
        assert result.verdict == "broken"
        assert shown(result, capsys, model) > 1e-3

    def test_a_length_that_became_a_constant_is_not_decided(self):
        class Constant(Port):
            def positions(self, ids, positions, mask, past):
                return torch.arange(int(ids.shape[1])).expand_as(ids)

        assert found(Constant(), EXPORTED, exported=True).verdict in ("holds", "not decided")
