// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/diagnose/advise/action/action_entry.hpp>

/// Actions on what a training step computes and keeps. Names of arguments: transformers 5.17 (training_args.py,
/// modeling_utils.py), peft (tuners/lora/config.py), bitsandbytes (optim), torch 2.11.
namespace vlmest::diagnose {

namespace action {

/// peft's target_modules as a pattern: adapters on the language model alone, as the plan has them. `whole`: there is
/// nothing beside it.
inline std::string lora_line(const Lora& l, const Vlm& vlm, bool whole) {
  const bool bare = vlm.family.traits().bare_projections && l.targets == Lora{}.targets;
  std::string names;
  for (const auto& t : l.targets)
    names += (names.empty() ? "" : "|") + (bare ? t.substr(0, t.size() - std::string_view("_proj").size()) : t);
  const std::string where = l.vision || whole ? ".*\\.(" : ".*language_model.*\\.(";
  return "model = get_peft_model(model, LoraConfig(r=" + std::to_string(l.rank) + ", target_modules=r\"" + where +
         names + ")\"))";
}

/// The first layers of the decoder, more and more of them.
std::vector<Settings> checkpointed_layers(const Subject& s);

inline std::vector<Settings> optimizer(const Subject& s, Optimizer o, bool applies = true) {
  return changed(s, s.training() && applies && s.plan().optimizer != o, [o](Settings& n) { n.plan.optimizer = o; });
}
/// Labels as the losses of Liger Kernel take them, which are called by the lines below. Its patches of whole models
/// (use_liger_kernel) leave out some of them, and swap MLPs and norms of others whatever is asked for
/// (liger_kernel/transformers/monkey_patch.py of 0.8.2).
inline constexpr const char* next_tokens = "torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:].flatten()";

/// Whether the model has its decoder and its head apart, and nothing behind the head.
inline bool splits_head(const Subject& s) { return s.now.vlm.family.traits().plain_head; }

inline bool keeps_moments(Optimizer o) {
  return o == Optimizer::adamw || o == Optimizer::adamw_fused || o == Optimizer::adamw_bnb_8bit;
}

}  // namespace action

inline constexpr std::array training_actions{
    ActionEntry{
        "checkpointing-full", "compute the activations of every layer again in the backward", Loses::nothing,
        [](const Subject& s) {
          const Plan& p = s.plan();
          const bool all = p.checkpointed.vision && p.checkpointed.language && !p.checkpointed.layers;
          return changed(s, s.training() && (p.checkpointing != Checkpointing::full || !all), [](Settings& n) {
            n.plan.checkpointing = Checkpointing::full;
            n.plan.checkpointed = {};
          });
        },
        [](const Subject&, const Settings&) {
          return std::string(
              "model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": False})  # or "
              "TrainingArguments(gradient_checkpointing=True)");
        }}
        .in_general({.inference = false,
                     .torch = "gradient_checkpointing=True",
                     .in_force = [](const Plan& p, const Gpu&) { return p.checkpointing == Checkpointing::full; }}),
    ActionEntry{"checkpointing-selective", "keep the results of products and attention, compute the rest again",
                Loses::nothing,
                [](const Subject& s) {
                  return changed(s, s.training() && s.plan().checkpointing == Checkpointing::off,
                                 [](Settings& n) { n.plan.checkpointing = Checkpointing::selective; });
                },
                [](const Subject&, const Settings&) {
                  return std::string(
                      "model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": False, "
                      "\"context_fn\": functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, "
                      "[torch.ops.aten.mm.default, torch.ops.aten.addmm.default, "
                      "torch.ops.aten._scaled_dot_product_flash_attention.default, "
                      "torch.ops.aten._scaled_dot_product_cudnn_attention.default])})");
                }},
    ActionEntry{"checkpointing-vision", "compute the activations of the vision tower's layers again", Loses::nothing,
                [](const Subject& s) {
                  return changed(s, s.training() && s.plan().checkpointing == Checkpointing::off && s.plan().images > 0,
                                 [](Settings& n) {
                                   n.plan.checkpointing = Checkpointing::full;
                                   n.plan.checkpointed = {.vision = true, .language = false};
                                 });
                },
                [](const Subject& s, const Settings&) {
                  return "model." + s.vision +
                         ".gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": False})";
                }}
        .in_general({.inference = false, .torch = "model.visual.gradient_checkpointing_enable()  # of the tower, too"}),
    ActionEntry{
        "checkpointing-layers", "compute the activations of some of the language model's layers again", Loses::nothing,
        action::checkpointed_layers,
        [](const Subject&, const Settings& after) {
          return "model.get_decoder().gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": "
                 "False}); [setattr(layer, \"gradient_checkpointing\", False) for layer in "
                 "model.get_decoder().layers[" +
                 std::to_string(*after.plan.checkpointed.layers) + ":]]";
        }},
    ActionEntry{"loss-chunked", "head and loss over slices of the tokens, so that logits never exist whole",
                Loses::nothing,
                [](const Subject& s) {
                  return changed(s, s.training() && s.plan().loss != Loss::chunked && action::splits_head(s),
                                 [](Settings& n) { n.plan.loss = Loss::chunked; });
                },
                [](const Subject&, const Settings&) {
                  return std::string(
                             "h = model.model(**inputs).last_hidden_state.flatten(0, 1); loss = "
                             "liger_kernel.transformers.LigerFusedLinearCrossEntropyLoss()(model.lm_head.weight, h, ") +
                         action::next_tokens + ")";
                }}
        .in_general({.inference = false, .torch = "use_liger_kernel=True"}),
    ActionEntry{"loss-fused", "one kernel for the loss, which writes the gradient over the logits", Loses::nothing,
                [](const Subject& s) {
                  return changed(s, s.training() && s.plan().loss == Loss::unfused,
                                 [](Settings& n) { n.plan.loss = Loss::fused; });
                },
                [](const Subject&, const Settings&) {
                  return std::string(
                             "logits = model(**inputs).logits.flatten(0, 1); loss = "
                             "liger_kernel.transformers.LigerCrossEntropyLoss()(logits, ") +
                         action::next_tokens + ")";
                }},
    ActionEntry{"optimizer-fused", "one kernel for the optimizer, without temporaries", Loses::nothing,
                [](const Subject& s) {
                  return action::optimizer(s, Optimizer::adamw_fused, s.plan().optimizer == Optimizer::adamw);
                },
                [](const Subject&, const Settings&) {
                  return std::string(
                      "TrainingArguments(optim=\"adamw_torch_fused\")  # or torch.optim.AdamW(..., fused=True)");
                }},
    ActionEntry{"optimizer-8bit", "the optimizer's moments in 8 bits", Loses::quality,
                [](const Subject& s) {
                  return action::optimizer(s, Optimizer::adamw_8bit, action::keeps_moments(s.plan().optimizer));
                },
                [](const Subject&, const Settings&) {
                  return std::string(
                      "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr)  # Trainer's "
                      "adamw_bnb_8bit keeps moments of embeddings in fp32: --optimizer adamw-bnb-8bit");
                }}
        .in_general({.inference = false,
                     .torch = "optim=\"adamw_bnb_8bit\"",
                     .in_force =
                         [](const Plan& p, const Gpu&) {
                           return p.optimizer == Optimizer::adamw_8bit || p.optimizer == Optimizer::adamw_bnb_8bit;
                         }}),
    ActionEntry{"optimizer-adafactor", "factored second moments, no first ones", Loses::quality,
                [](const Subject& s) { return action::optimizer(s, Optimizer::adafactor); },
                [](const Subject&, const Settings&) { return std::string("TrainingArguments(optim=\"adafactor\")"); }},
    ActionEntry{"optimizer-sgd-momentum", "SGD with momentum, one state", Loses::order,
                [](const Subject& s) {
                  return action::optimizer(s, Optimizer::sgd_momentum, s.plan().optimizer != Optimizer::sgd);
                },
                [](const Subject&, const Settings&) {
                  return std::string("optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)");
                }},
    ActionEntry{"optimizer-sgd", "SGD, no states", Loses::order,
                [](const Subject& s) { return action::optimizer(s, Optimizer::sgd); },
                [](const Subject&, const Settings&) { return std::string("TrainingArguments(optim=\"sgd\")"); }},
    ActionEntry{"freeze-vision", "the vision tower is not trained", Loses::quality,
                [](const Subject& s) {
                  return changed(
                      s,
                      s.training() && takes_images(s.now.vlm) && s.plan().trainable.vision && s.plan().lora.rank == 0,
                      [](Settings& n) { n.plan.trainable.vision = false; });
                },
                [](const Subject& s, const Settings&) { return "model." + s.vision + ".requires_grad_(False)"; }}
        .in_general({.inference = false,
                     .torch = "for p in model.visual.parameters(): p.requires_grad_(False)",
                     .in_force = [](const Plan& p, const Gpu&) { return !p.trainable.vision || p.lora.rank > 0; }}),
    ActionEntry{"lora-16", "adapters of rank 16 are trained, nothing else", Loses::quality,
                [](const Subject& s) {
                  return changed(s, s.training() && s.plan().lora.rank == 0,
                                 [](Settings& n) { n.plan.lora.rank = 16; });
                },
                [](const Subject& s, const Settings& after) {
                  return action::lora_line(after.plan.lora, after.vlm, s.vision.empty());
                }}
        .in_general({.inference = false,
                     .torch = "peft.get_peft_model(model, LoraConfig(r=16, target_modules=\"all-linear\"))",
                     .in_force = [](const Plan& p, const Gpu&) { return p.lora.rank > 0; }}),
    ActionEntry{"qlora", "adapters over the language model's weights in 4 bits", Loses::quality,
                [](const Subject& s) {
                  return changed(s, s.training() && s.plan().weights != DType::nf4, [](Settings& n) {
                    n.plan.weights = DType::nf4;
                    if (n.plan.lora.rank == 0) n.plan.lora.rank = 16;
                  });
                },
                [](const Subject& s, const Settings& after) {
                  return "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type=\"nf4\", "
                         "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16, " +
                         skipped_modules(s) + "); " + action::lora_line(after.plan.lora, after.vlm, s.vision.empty());
                }}
        .in_general({.inference = false,
                     .torch = "BitsAndBytesConfig(load_in_4bit=True) under a LoraConfig",
                     .in_force = [](const Plan& p, const Gpu&) { return p.lora.rank > 0 && p.weights == DType::nf4; }}),
};

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/actions_training.hpp>
#endif
