"""A recorder writes what the program reads, and the hook records what an indexer selects from what its token sees."""

import base64
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT

from avsg.trace import Recorder, hook


def saved(recorder, folder):
    recorder.save(folder / "ids.npz")
    assert [path.name for path in folder.iterdir()] == ["ids.npz"]
    with np.load(folder / "ids.npz") as file:
        return file["ids"], file["stable"]


def test_steps_of_fewer_tokens_and_ids_end_with_minus_one(tmp_path):
    recorder, reused = Recorder(), np.array([[[7, 3]]])
    recorder.record(reused, 8)
    reused[:] = 0
    recorder.record(np.arange(6).reshape(1, 2, 3))
    ids, stable = saved(recorder, tmp_path)
    assert ids.dtype == stable.dtype == np.int32 and len(recorder) == 2
    assert ids.tolist() == [[[[7, 3, -1], [-1, -1, -1]]], [[[0, 1, 2], [3, 4, 5]]]]
    assert stable.tolist() == [8, -1]


def test_what_is_no_step_is_refused_and_not_recorded(tmp_path):
    recorder = Recorder()
    with pytest.raises(ValueError, match="no step was recorded"):
        recorder.save(tmp_path / "ids.npz")
    for ids, stable, why in [
        (np.zeros((1, 2)), -1, "ids of float64 have the shape"),
        (np.arange(3), -1, "2 to 4 axes"),
        (np.array([[1 << 24]]), -1, "16777216, but positions are below 16777216"),
        (np.zeros((2, 3, 1, 4), int), [1, 2], "one for each request"),
    ]:
        with pytest.raises(ValueError, match=why):
            recorder.record(ids, stable)
    recorder.record(np.zeros((1, 4), int))
    with pytest.raises(ValueError, match="the same axes"):
        recorder.record(np.zeros((2, 1, 4), int))
    assert len(recorder) == 1


class StandInIndexer:
    """A module of torch as `hook` sees it; it returns what the test puts into `selected`."""

    def __init__(self, selected=None):
        self.selected, self.hooks = selected, {}

    def register_forward_hook(self, function, with_kwargs):
        assert with_kwargs
        self.hooks[function] = function
        handle = type("Handle", (), {"remove": lambda _: self.hooks.pop(function)})
        return handle()

    def forward(self, hidden_states, attention_mask=None):
        return self.selected

    def __call__(self, *args, **kwargs):
        output = self.forward(*args, **kwargs)
        for function in list(self.hooks.values()):
            function(self, args, kwargs, output)


class Model:
    def __init__(self, *indexers):
        self.indexers = indexers

    def modules(self):
        return [self, *self.indexers]


@pytest.mark.parametrize("additive", [False, True])
def test_padding_and_later_tokens_are_minus_one_and_prompts_are_left_out(additive, tmp_path):
    # Two requests in a cache of 8 places; the second one begins with 3 places of padding.
    mask = np.tril(np.ones((8, 8), bool))[None].repeat(2, 0)
    mask[1, :, :3] = False
    given = np.where(mask, 0.0, -3e38) if additive else mask
    selected = np.array([[[0, 5, 7], [6, 7, 1]], [[2, 3, 6], [0, 4, 6]]])
    model, recorder = Model(StandInIndexer(selected), StandInIndexer(selected[..., ::-1])), Recorder()
    remove = hook(model, recorder, tokens=2)
    model.indexers[0]("hidden", given[:, 5:7])  # a forward that raises behind its first indexer
    for indexer in model.indexers:
        indexer.selected, kept = np.zeros((2, 6, 3), int), indexer.selected
        indexer("hidden", attention_mask=given[:, :6])
        indexer.selected = kept
        indexer("hidden", attention_mask=given[:, 5:7])
    remove()
    model.indexers[0]("hidden", given)
    ids, stable = saved(recorder, tmp_path)
    expected = np.array([[[0, 5, -1], [6, -1, 1]], [[-1, 3, -1], [-1, 4, 6]]])
    assert ids.tolist() == [[expected.tolist(), expected[..., ::-1].tolist()]]
    assert stable.tolist() == [[5, 5]]


def test_an_indexer_without_a_mask_marks_its_ids_itself_and_other_outputs_are_refused(tmp_path):
    indexer, recorder = StandInIndexer(np.array([[[3, -1]]])), Recorder()
    hook(Model(indexer), recorder)
    indexer("hidden")
    indexer.selected = np.zeros((1, 4, 1, 2), int)
    with pytest.raises(ValueError, match=r"StandInIndexer returns int64 of shape \(1, 4, 1, 2\)"):
        indexer("hidden")
    assert [array.tolist() for array in saved(recorder, tmp_path)] == [[[[[[3, -1]]]]], [[-1]]]
    with pytest.raises(ValueError, match="Model has no module whose class is named"):
        hook(Model(), recorder)


def run_lines(engine, folder, monkeypatch, modules, **names):
    """Runs the lines of docs/sizing.md for an engine with stand-ins of its modules, and returns what they save."""
    page = (ROOT / "docs" / "sizing.md").read_text()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(page.split(f"### {engine}")[1].split("```python\n")[1].split("```")[0], names)
    with np.load("ids.npz") as file:
        return file["ids"], file["stable"]


def test_the_documented_lines_for_sglang_record_what_the_server_returns(tmp_path, monkeypatch):
    rows = np.arange(30, dtype=np.int32).reshape(5, 2, 3)
    meta = {"prompt_tokens": 3, "indexer_topk": base64.b64encode(rows.tobytes())}
    answer = SimpleNamespace(json=lambda: {"meta_info": meta})
    modules = {"requests": SimpleNamespace(post=lambda _, json: answer if json["return_indexer_topk"] else None)}
    sizes = {"url": "", "text": "", "num_hidden_layers": 2, "index_topk": 3}
    ids, stable = run_lines("SGLang", tmp_path, monkeypatch, modules, **sizes)
    assert (ids == rows[3:, :, None]).all() and stable.tolist() == [3, 4]


def test_the_documented_lines_for_vllm_record_each_step_that_another_follows(tmp_path, monkeypatch):
    class Tensor(np.ndarray):
        cpu = np.ndarray.copy

        def numpy(self):
            return np.asarray(self)

    buffer, calls = np.full((8, 3), -1, np.int32).view(Tensor), iter(range(100))

    def select(queries, layer, kv_cache, topk_backend):
        buffer[: len(queries)] = next(calls)
        return buffer

    attention = SimpleNamespace(sparse_attn_indexer=select)

    class LLM:
        def __init__(self, name, **options):
            assert options == {"enforce_eager": True, "max_num_seqs": 1}
            self.forward(1)

        def forward(self, tokens):
            for layer in ("layers.0", "layers.1"):
                attention.sparse_attn_indexer([0] * tokens, layer, None, topk_backend="torch")

        def generate(self, text, sampling):
            for tokens in (5, 1, 1, 1):
                self.forward(tokens)

    modules = {"vllm": SimpleNamespace(LLM=LLM, SamplingParams=dict), "vllm.models": SimpleNamespace()}
    modules["vllm.models.deepseek_v32"] = SimpleNamespace(attention=attention)
    ids, stable = run_lines("vLLM", tmp_path, monkeypatch, modules, name="", text="")
    assert ids.tolist() == [[[[4] * 3], [[5] * 3]], [[[6] * 3], [[7] * 3]]] and stable.tolist() == [-1, -1]


@pytest.mark.thorough
def test_the_lines_of_the_readme_record_a_model_of_transformers(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    exec((ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0], {})
    with np.load("ids.npz") as file:
        assert file["ids"].shape[1:] == (3, 1, 1, 64) and file["stable"][:2].tolist() == [[512], [513]]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["DeepseekV32", "GlmMoeDsa"])
def test_a_random_model_of_transformers_is_recorded_as_its_topk_selected(name, tmp_path, monkeypatch):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(1)
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 3, "index_topk": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "index_n_heads": 2, "index_head_dim": 16}
    ranks = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
    config = getattr(transformers, f"{name}Config")(**sizes, **heads, **ranks, first_k_dense_replace=3)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    chosen, topk = [], torch.Tensor.topk

    def watched(scores, *args, **kwargs):
        found = topk(scores, *args, **kwargs)
        if scores.ndim == 3 and scores.shape[1] == 1:  # an indexer's scores of one token
            chosen.append(torch.where(found.values < -1e30, -1, found.indices).numpy())
        return found

    monkeypatch.setattr(torch.Tensor, "topk", watched)
    recorder = Recorder()
    hook(model, recorder)
    prompt, mask = torch.randint(2, 64, (2, 12)), torch.ones(2, 12, dtype=torch.int64)
    mask[1, :7] = 0
    model.generate(prompt, attention_mask=mask, max_new_tokens=25, min_new_tokens=25, pad_token_id=0)
    ids, stable = saved(recorder, tmp_path)
    assert ids.shape == (24, 3, 2, 1, 16) and stable.tolist() == [[step, step] for step in range(12, 36)]
    wide = [np.pad(rows, ((0, 0), (0, 0), (0, 16 - rows.shape[-1])), constant_values=-1) for rows in chosen]
    assert (ids.reshape(72, 2, 1, 16) == wide).all()
    assert (ids[0, :, 1] >= 0).sum(-1).max() == 6 and (ids[:, :, 1] != 6).all(), "padding was selected"
