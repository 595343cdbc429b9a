# SPDX-License-Identifier: Apache-2.0
"""Builds a model from its config with random weights on the GPU, and sets it up for training."""

from collections.abc import Mapping

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMultimodalLM,
    PreTrainedModel,
)

from recorder.errors import RecorderError
from recorder.scenario import Scenario

IMPLEMENTATIONS = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
# q, k, v and o of the language model; OPT (BLIP-2) calls its output projection out_proj, as do layers of linear
# attention (Qwen3.5), which are left out; T5 says q, k, v and o. Phi-4-multimodal's layers stand in the model itself,
# and their q, k and v are one linear, which is none of these.
LORA_TARGETS = (
    r".*(language_model|text_model).*(?<!\.linear_attn)\.(q_proj|k_proj|v_proj|o_proj|out_proj|q|k|v|o)"
    r"|model\.layers\.\d+\.self_attn\.o_proj"
)
LORA_ALPHA = 16
# Models with two stacks of layers that are made apart and share their weights then: both at once would not fit.
TIED_STACKS = ("diffusion_gemma",)
# Models of pictures that transformers lists among those of text.
AMONG_TEXT = ("phi4_multimodal",)


def build(document: Mapping, scenario: Scenario) -> torch.nn.Module:
    """The model in the scenario's dtype, in eval mode; random weights are made on the GPU, nothing is downloaded."""
    rest = {k: v for k, v in document.items() if k != "model_type"}
    try:
        config = CONFIG_MAPPING[document["model_type"]](**rest)
    except KeyError as e:
        raise RecorderError(
            "config: model_type", f"transformers has no '{document['model_type']}'", "install a newer transformers"
        ) from e
    two_stacks = config.model_type in TIED_STACKS
    auto = AutoModelForMultimodalLM if two_stacks else AutoModelForImageTextToText
    if config.model_type in AMONG_TEXT:
        auto = AutoModelForCausalLM
    with torch.device("meta" if two_stacks else "cuda"):
        model = auto.from_config(
            config, dtype=getattr(torch, scenario.dtype), attn_implementation=IMPLEMENTATIONS[scenario.attn]
        )
    if two_stacks:
        _on_device(model)
    if _has_own_head(document.get("text_config") or {}):
        head = model.get_output_embeddings()
        head.weight = torch.nn.Parameter(head.weight.detach().clone())
    return model.eval()


@torch.no_grad()
def _on_device(model: torch.nn.Module) -> None:
    """Gives a model on the meta device memory on the GPU, shared weights once, and the values that its class gives new
    parameters and buffers; what it leaves alone is 1."""
    made: dict[int, torch.nn.Parameter] = {}
    for module in model.modules():
        for name, p in module._parameters.items():
            if p is not None and id(p) not in made:
                made[id(p)] = torch.nn.Parameter(torch.empty_like(p, device="cuda").normal_(std=0.02))
            module._parameters[name] = None if p is None else made[id(p)]
        for name, b in module._buffers.items():
            module._buffers[name] = None if b is None else torch.ones_like(b, device="cuda")
    _initialise(model, model)


def _initialise(module: torch.nn.Module, owner: PreTrainedModel) -> None:
    """A module's values are those that the innermost model around it gives new ones."""
    owner = module if isinstance(module, PreTrainedModel) else owner
    owner._init_weights(module)
    for child in module.children():
        _initialise(child, owner)


def _has_own_head(text: Mapping) -> bool:
    """Whether a checkpoint has an output head that from_pretrained leaves apart, though its class ties it: T5's whose
    output is not scaled (configuration_t5.py)."""
    scaled = text.get("scale_decoder_outputs", text.get("tie_word_embeddings") is not False)
    return text.get("model_type") == "t5" and not scaled


def parameter_counts(model: torch.nn.Module) -> dict[str, int]:
    """Parameters by top module: model.language_model, lm_head; tied ones under their first name."""
    counts: dict[str, int] = {}
    for name, p in model.named_parameters():
        parts = name.split(".")
        top = ".".join(parts[:2]) if parts[0] == "model" else parts[0]
        counts[top] = counts.get(top, 0) + p.numel()
    return counts


def buffer_bytes(model: torch.nn.Module) -> int:
    """Bytes of the buffers that are on the GPU."""
    return sum(b.numel() * b.element_size() for b in model.buffers() if b.is_cuda)


def is_vision(name: str) -> bool:
    """Whether a parameter belongs to the vision tower. Most families call it vision_tower or vision_model, the Qwen
    line and GLM call it visual; its merger belongs to it there. Phi-4-multimodal calls it img_processor, and has a
    projector of sound for prompts with pictures, vision_speech."""
    named = "vision" in name and "vision_speech" not in name
    return named or ".img_processor." in name or ".visual." in name or name.startswith("visual.")


def prepare_training(model: torch.nn.Module, scenario: Scenario) -> torch.nn.Module:
    """Train mode, frozen parts, adapters and checkpointing, in the order in which a training script applies them."""
    model.train()
    if scenario.freeze_vision:
        for name, p in model.named_parameters():
            if is_vision(name):
                p.requires_grad_(False)
    if scenario.lora:
        model = _with_adapters(model, scenario)
    if scenario.ckpt:
        model.gradient_checkpointing_enable()
    return model


def _with_adapters(model: torch.nn.Module, scenario: Scenario) -> torch.nn.Module:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as e:
        raise RecorderError("--lora", "peft is not installed", "pip install peft") from e
    config = LoraConfig(r=scenario.lora, lora_alpha=LORA_ALPHA, target_modules=LORA_TARGETS, task_type="CAUSAL_LM")
    model = get_peft_model(model, config)
    if scenario.ckpt:  # the frozen embedding would leave the first checkpointed layer without a gradient
        model.enable_input_require_grads()
    return model


def make_optimizer(scenario: Scenario, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """A tiny learning rate: random weights must not drift into infinities while they are measured."""
    rate = 1e-6
    if scenario.optim == "adamw":
        return torch.optim.AdamW(parameters, lr=rate)
    if scenario.optim == "adamw_fused":
        return torch.optim.AdamW(parameters, lr=rate, fused=True)
    if scenario.optim == "sgd":
        return torch.optim.SGD(parameters, lr=rate)
    if scenario.optim == "sgdm":
        return torch.optim.SGD(parameters, lr=rate, momentum=0.9)
    from transformers.optimization import Adafactor

    return Adafactor(parameters, lr=rate, relative_step=False, scale_parameter=False)
