// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/parallel/launch.hpp>
#include <vlmest/parallel/zero_settings.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace launching {

/// Hosts of as many GPUs as reach each other over the innermost links.
struct Hosts {
  std::int64_t count = 1, gpus = 1;
};
inline Hosts hosts(const Network& n, std::int64_t gpus) {
  const std::int64_t most = n.domains.empty() ? gpus : std::min<std::int64_t>(gpus, n.domains.front().gpus);
  const std::int64_t count = (gpus + most - 1) / most;
  return {count, (gpus + count - 1) / count};
}

inline std::string torchrun(const Hosts& h, const char* script) {
  const std::string each = "--nproc-per-node " + std::to_string(h.gpus) + " " + script;
  if (h.count == 1) return "torchrun --standalone " + each;
  return "torchrun --nnodes " + std::to_string(h.count) + " --rdzv-backend c10d --rdzv-endpoint HOST:29500 " + each;
}

inline std::string in_python(DType t) {
  return t == DType::fp32 ? "torch.float32" : t == DType::fp16 ? "torch.float16" : "torch.bfloat16";
}

/// A foreach optimizer takes no list of parameters of two meshes (torch/distributed/tensor/_dispatch.py).
inline constexpr const char* two_groups = ", in two groups: those that tp divides, and the others";

constexpr bool mixes_precision(const Layout& l) { return l.param_dtype || l.reduce_dtype; }

/// Options of fully_shard, each behind a comma.
inline std::string shard_options(const Layout& l, bool reshards) {
  std::string r;
  if (layer_ranks(l) > 1 || l.pp > 1) r += ", mesh=mesh[\"dp\"]";
  if (!reshards) r += ", reshard_after_forward=False";
  if (!mixes_precision(l)) return r;
  r += ", mp_policy=MixedPrecisionPolicy(";
  if (l.param_dtype) r += "param_dtype=" + in_python(*l.param_dtype);
  if (l.reduce_dtype) r += (l.param_dtype ? ", reduce_dtype=" : "reduce_dtype=") + in_python(*l.reduce_dtype);
  return r + ")";
}
inline std::string import_fully_shard(const Layout& l) {
  return std::string("from torch.distributed.fsdp import fully_shard") +
         (mixes_precision(l) ? ", MixedPrecisionPolicy" : "");
}

inline std::string fully_shard(const Layout& l, const Graph& g) {
  const std::string options = shard_options(l, l.reshard_after_forward);
  std::string r = import_fully_shard(l), lists;
  for (const std::string& path : layer_lists(g)) lists += (lists.empty() ? "*model." : ", *model.") + path;
  r += "\nfor layer in [" + lists + "]:\n    fully_shard(layer" + options + ")\nfully_shard(model" + options + ")";
  return r + "\noptimizer = ...  # over model.parameters(), which are shards now" +
         (layer_ranks(l) > 1 ? two_groups : "");
}

/// Nothing for a schedule that torch 2.11 has not (torch/distributed/pipelining/schedules.py): its zero-bubble
/// schedules interleave, or cut the model in a V.
inline std::string pipeline(const Layout& l) {
  if (l.schedule.kind == ScheduleKind::zero_bubble) return {};
  const bool chunks = l.schedule.chunks > 1;
  const std::string kind = l.schedule.kind == ScheduleKind::gpipe         ? "ScheduleGPipe"
                           : l.schedule.kind == ScheduleKind::interleaved ? "ScheduleInterleaved1F1B"
                                                                          : "Schedule1F1B";
  const std::string pp = std::to_string(l.pp), stages = std::to_string(l.pp * l.schedule.chunks);
  const bool divided = l.tp > 1;
  std::string r =
      "from torch.distributed.device_mesh import init_device_mesh\n"
      "from torch.distributed.pipelining import PipelineStage, " +
      kind + (divided ? "\nfrom transformers.distributed.tensor_parallel import apply_tensor_parallelism" : "") +
      "\nmesh = init_device_mesh(\"cuda\", (" + pp + ", " + std::to_string(l.dp) +
      (divided ? ", " + std::to_string(l.tp) : "") + "), mesh_dim_names=(\"pp\", \"dp\"" + (divided ? ", \"tp\"" : "") +
      "))\nrank, group = mesh.get_local_rank(\"pp\"), mesh.get_group(\"pp\")\n" +
      (divided ? "model = apply_tensor_parallelism(model, mesh[\"tp\"])  # before it is cut\n" : "");
  const std::string index = chunks ? "i" : "rank";
  std::string part = "part(" + index + ")";
  if (l.dp > 1 && l.shard == Shard::fsdp2) {
    // The stage itself keeps its own weights from the forward to the backward, as the root of fully_shard.
    r += import_fully_shard(l) +
         "\nmodule = part(rank)  # the layers of that stage\nfor layer in layers(module):  # members of its lists of "
         "modules\n"
         "    fully_shard(layer" +
         shard_options(l, l.reshard_after_forward) + ")\nfully_shard(module" + shard_options(l, true) + ")\n";
    part = "module";
  } else if (l.dp > 1) {
    r += "from torch.nn.parallel import DistributedDataParallel\n";
    part = "DistributedDataParallel(" + part +
           (divided ? ", device_mesh=mesh[\"dp\"]" : ", process_group=mesh.get_group(\"dp\")") +
           (l.bucket_views ? ", gradient_as_bucket_view=True)" : ")");
  }
  const std::string stage = "PipelineStage(" + part + ", " + index + ", " + stages + ", device, group=group)";
  r += chunks ? "stages = [" + stage + " for i in range(rank, " + stages + ", " + pp + ")]" : "stage = " + stage;
  r += part == "module" ? "\n" : "  # part(" + index + "): the layers of that stage\n";
  return r + "schedule = " + kind + "(" + (chunks ? "stages" : "stage") +
         ", n_microbatches=" + std::to_string(micro_batches(l)) +
         ", loss_fn=loss_fn)\nschedule.step(..., return_outputs=False)  # otherwise all logits stay, and a copy of "
         "them";
}

inline std::string divided(const Layout& l, const Plan& plan, bool has_tower) {
  const std::string ranks = std::to_string(layer_ranks(l));
  return std::string("from transformers import ") +
         (has_tower ? "AutoModelForImageTextToText" : "AutoModelForCausalLM") +
         "\nfrom transformers.distributed import DistributedConfig\nmodel = " +
         (has_tower ? "AutoModelForImageTextToText" : "AutoModelForCausalLM") +
         ".from_pretrained(MODEL, dtype=" + in_python(plan.dtype) +
         ", distributed_config=DistributedConfig(tp_size=" + ranks + (l.ep > 1 ? ", enable_expert_parallel=True" : "") +
         "))";
}

/// The model's layers divided within groups of a mesh, and then replicas of that.
inline std::string divided_in_replicas(const Layout& l) {
  // By the plan of experts alone where the config asks for it (distributed/mixin.py, tp_plan).
  const bool experts = l.ep > 1;
  return std::string("from torch.distributed.device_mesh import init_device_mesh\n") +
         (experts ? "from transformers.distributed import DistributedConfig\n" : "") +
         "from transformers.distributed.tensor_parallel import apply_tensor_parallelism\n"
         "mesh = init_device_mesh(\"cuda\", (" +
         std::to_string(l.dp) + ", " + std::to_string(layer_ranks(l)) + "), mesh_dim_names=(\"dp\", \"tp\"))\n" +
         (experts ? "model.config.distributed_config = DistributedConfig(enable_expert_parallel=True)\n" : "") +
         "model = apply_tensor_parallelism(model, mesh[\"tp\"])\n";
}

/// A step over parts of sequences, behind what makes a model over all GPUs. context_parallel cuts its buffers to this
/// rank's places, and runs the tower neither in its forward nor in a second one.
inline std::string parts_of_sequences(const Layout& l, const std::string& model) {
  return "from torch.distributed.device_mesh import init_device_mesh\n"
         "from torch.distributed.tensor.experimental import context_parallel\n"
         "mesh = init_device_mesh(\"cuda\", (" +
         std::to_string(l.dp) + ", " + std::to_string(l.cp) + "), mesh_dim_names=(\"dp\", \"cp\"))\n" + model +
         "\nplaces = torch.arange(inputs_embeds.shape[1], device=\"cuda\")  # of embeddings with the images in them\n"
         "with context_parallel(mesh[\"cp\"], buffers=[places, shift_labels], buffer_seq_dims=[0, 1]):\n"
         "    loss = model(inputs_embeds=inputs_embeds.index_select(1, places),\n"
         "                 position_ids=position_ids.index_select(-1, places),\n"
         "                 attention_mask=torch.ones_like(shift_labels), labels=shift_labels, "
         "shift_labels=shift_labels).loss\n"
         "    loss.backward()";
}

inline std::string script(const Layout& l, const Plan& plan, const Graph& g, bool has_tower, bool training) {
  if (divides_layers_alone(l)) return divided(l, plan, has_tower);
  if (l.pp > 1) return pipeline(l);
  const std::string before = layer_ranks(l) > 1 ? divided_in_replicas(l) : "";
  if (!training) return before;
  if (l.shard == Shard::fsdp2 && l.cp > 1) return parts_of_sequences(l, fully_shard(l, g));
  if (l.shard == Shard::fsdp2) return before + fully_shard(l, g);
  if (is_zero(l.shard))
    return "import deepspeed\nmodel, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, "
           "config=\"ds_config.json\")";
  std::string r =
      before + "from torch.nn.parallel import DistributedDataParallel\nmodel = DistributedDataParallel(model";
  if (layer_ranks(l) > 1) r += ", device_mesh=mesh[\"dp\"]";
  r += l.bucket_views ? ", gradient_as_bucket_view=True)" : ")";
  if (l.cp > 1) return parts_of_sequences(l, r);
  return layer_ranks(l) > 1 ? r + "\noptimizer = ...  # over model.parameters()" + two_groups : r;
}

inline std::string deepspeed_config(const Layout& l, const Plan& plan) {
  const ZeroSettings s;
  const auto key = [](const std::string& name, const std::string& value) { return "\"" + name + "\": " + value; };
  std::string zero = key("stage", l.shard == Shard::zero1   ? "1"
                                  : l.shard == Shard::zero2 ? "2"
                                                            : "3") +
                     ", " + key("reduce_bucket_size", std::to_string(s.reduce_bucket));
  if (l.shard == Shard::zero3)
    zero += ", " + key("stage3_prefetch_bucket_size", std::to_string(s.prefetch)) + ", " +
            key("stage3_param_persistence_threshold", std::to_string(s.persistence)) + ", " +
            key("stage3_max_live_parameters", std::to_string(s.live)) + ", " +
            key("stage3_max_reuse_distance", std::to_string(s.reuse)) + ", " +
            key("sub_group_size", std::to_string(s.sub_group));
  std::string r = "{" + key("train_micro_batch_size_per_gpu", std::to_string(plan.batch)) + ",\n " +
                  key("gradient_accumulation_steps", std::to_string(plan.gradient_accumulation)) + ",\n ";
  if (plan.dtype == DType::bf16) r += key("bf16", "{\"enabled\": true}") + ",\n ";
  if (plan.dtype == DType::fp16) r += key("fp16", "{\"enabled\": true}") + ",\n ";
  if (l.reduce_dtype) r += key("communication_data_type", "\"" + std::string(name(*l.reduce_dtype)) + "\"") + ",\n ";
  return r + key("zero_allow_untested_optimizer", "true") + ",\n " + key("zero_optimization", "{" + zero + "}") + "}";
}

/// Nothing where accelerate starts no such run, or has no argument for a part of it: a type of reduced gradients, views
/// of buckets, autocast beside fully_shard, for which it casts parameters, casting alone, and parts of sequences with
/// images in them, whose token ids it cuts.
inline std::string accelerate(const Layout& l, const Plan& plan, const Hosts& h) {
  if (layer_ranks(l) > 1 || l.pp > 1 || l.cp > 1 || l.bucket_views) return {};
  if (l.shard == Shard::fsdp2 && (mixes_precision(l) || plan.amp)) return {};
  std::string r = "accelerate launch --num_processes " + std::to_string(l.gpus());
  if (h.count > 1)
    r += " --num_machines " + std::to_string(h.count) +
         " --machine_rank RANK --main_process_ip HOST --main_process_port 29500";
  r += plan.amp ? " --mixed_precision bf16" : " --mixed_precision no";
  if (l.shard == Shard::none) r += " --multi_gpu";
  if (l.shard == Shard::fsdp2)
    r += std::string(" --use_fsdp --fsdp_version 2 --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP") +
         " --fsdp_reshard_after_forward " + (l.reshard_after_forward ? "true" : "false");
  if (is_zero(l.shard)) r += " --use_deepspeed --deepspeed_config_file ds_config.json";
  return r + " train.py";
}

/// Nothing for what Megatron-LM has no argument for, or another default than what is estimated; its ranks that divide
/// experts have tokens of their own.
inline std::string megatron(const Layout& l, const Plan& plan, const Hosts& h) {
  if (l.shard == Shard::zero2 || l.shard == Shard::zero3 || l.schedule.kind == ScheduleKind::gpipe ||
      l.schedule.kind == ScheduleKind::zero_bubble || (l.pp > 1 && l.shard == Shard::fsdp2) || (l.ep > 1 && l.dp > 1) ||
      !l.stages.empty() || l.bucket_views || mixes_precision(l) || !l.reshard_after_forward)
    return {};
  std::string r = torchrun(h, "pretrain_vlm.py");
  const auto size = [&](const char* argument, std::int64_t n) {
    if (n > 1) r += " --" + std::string(argument) + " " + std::to_string(n);
  };
  size("tensor-model-parallel-size", l.tp);
  size("pipeline-model-parallel-size", l.pp);
  size("context-parallel-size", l.cp);
  size("expert-model-parallel-size", l.ep);
  size("num-virtual-stages-per-pipeline-rank", l.schedule.chunks);
  const std::int64_t passes = l.pp > 1 ? micro_batches(l) : plan.gradient_accumulation;
  r += " --micro-batch-size " + std::to_string(plan.batch) + " --global-batch-size " +
       std::to_string(plan.batch * passes * l.dp);
  if (plan.dtype == DType::bf16 || plan.amp) r += " --bf16";
  if (plan.dtype == DType::fp16) r += " --fp16";
  if (l.sequence_parallel) r += " --sequence-parallel";
  if (l.shard == Shard::zero1) r += " --use-distributed-optimizer";
  if (l.shard == Shard::fsdp2) r += " --use-torch-fsdp2";
  return r;
}

}  // namespace launching

VLMEST_INLINE std::vector<std::string> layer_lists(const Graph& g) {
  std::vector<std::string> r;
  const std::vector<ScopeId> units = units_of_scopes(g);
  for (std::size_t s = 1; s < units.size(); ++s) {
    if (units[s] != static_cast<ScopeId>(s)) continue;
    const std::string whole = path(g, static_cast<ScopeId>(s));
    const std::string list = whole.substr(0, whole.rfind('.'));
    if (std::find(r.begin(), r.end(), list) == r.end()) r.push_back(list);
  }
  return r;
}

VLMEST_INLINE std::vector<Launch> launch(const Layout& l, const Plan& plan, const Network& network, const Graph& g,
                                         bool has_tower, bool training) {
  if (l.gpus() == 1) return {};
  const launching::Hosts h = launching::hosts(network, l.gpus());
  std::vector<Launch> r{{"torchrun", launching::torchrun(h, training ? "train.py" : "run.py")}};
  if (training || layer_ranks(l) > 1)
    if (const std::string lines = launching::script(l, plan, g, has_tower, training); !lines.empty())
      r.push_back({"python", lines});
  if (!training) return r;
  if (const std::string line = launching::accelerate(l, plan, h); !line.empty()) r.push_back({"accelerate", line});
  if (is_zero(l.shard)) r.push_back({"deepspeed", launching::deepspeed_config(l, plan)});
  if (const std::string line = launching::megatron(l, plan, h); !line.empty()) r.push_back({"megatron", line});
  return r;
}

}  // namespace vlmest::parallel
