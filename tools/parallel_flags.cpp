// SPDX-License-Identifier: Apache-2.0
#include "parallel_flags.hpp"

#include <array>
#include <string_view>

#include "options.hpp"
#include "streams.hpp"

namespace vlmest::tool {
namespace {

using parallel::Layout;
using parallel::ScheduleKind;
using parallel::Shard;
using parallel::Tower;

constexpr std::int64_t most_gpus = 1 << 16;

/// A dimension of the mesh by its name.
struct NamedSize {
  std::string_view name;
  int Layout::*size;
};
constexpr std::array mesh_sizes{NamedSize{"dp", &Layout::dp}, NamedSize{"tp", &Layout::tp},
                                NamedSize{"pp", &Layout::pp}, NamedSize{"cp", &Layout::cp},
                                NamedSize{"ep", &Layout::ep}};

/// "dp=2,tp=4"
void read_mesh(Layout& l, const std::string& text) {
  std::vector<std::string_view> seen;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    const std::string one = text.substr(from, to - from);
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string size_name = one.substr(0, equals);
    const NamedSize* found = nullptr;
    for (const NamedSize& s : mesh_sizes)
      if (s.name == size_name) found = &s;
    if (found == nullptr || equals == one.size())
      throw UsageError("--parallel", "'" + one + "' is not one of dp=N, tp=N, pp=N, cp=N, ep=N",
                       "name sizes of the mesh, such as --parallel dp=2,tp=4");
    for (const std::string_view s : seen)
      if (s == size_name) throw UsageError("--parallel", size_name + " is given twice", "give each size once");
    seen.push_back(found->name);
    l.*(found->size) = static_cast<int>(whole_value("--parallel " + size_name, one.substr(equals + 1), 1, most_gpus));
    from = to + 1;
  }
}

/// "interleaved:2"
parallel::Schedule read_schedule(const std::string& text) {
  if (text == "gpipe") return {ScheduleKind::gpipe, 1};
  if (text == "1f1b") return {ScheduleKind::one_f_one_b, 1};
  if (text == "zb") return {ScheduleKind::zero_bubble, 1};
  constexpr std::string_view interleaved = "interleaved:";
  if (text.starts_with(interleaved))
    return {ScheduleKind::interleaved,
            static_cast<int>(whole_value("--schedule interleaved", text.substr(interleaved.size()), 2, 64))};
  throw UsageError("--schedule", "'" + text + "' is not one of gpipe, 1f1b, interleaved:V, zb",
                   "V is the number of chunks of layers on each GPU, such as interleaved:2");
}

}  // namespace

void ParallelArgs::add_to(CLI::App& app) {
  const CLI::Validator says_something([](const std::string& text) { return text.empty() ? "it is empty" : ""; }, "");
  const auto in = [](CLI::Option* o) { return o->group("Several GPUs"); };
  in(app.add_option("--parallel", mesh, "sizes of the mesh: data, tensor, pipeline, context, expert parallel [1 each]")
         ->type_name("dp=N,tp=N,pp=N,cp=N,ep=N")
         ->check(says_something));
  in(add_whole(app, "--gpus", gpus, "the same as --parallel dp=N [1]", 1, most_gpus));
  in(add_choice(app, "--shard", shard,
                "what data-parallel GPUs divide: nothing (DDP), or states as ZeRO or FSDP2 [none]", words<Shard>()));
  in(app.add_flag("--ddp-bucket-view", bucket_views, "DDP's gradients are views of its buckets"));
  in(add_choice(app, "--reshard-after-forward", reshard, "FSDP2 gathers weights again for the backward [on]",
                {"on", "off"}));
  in(add_choice(app, "--param-dtype", param_dtype,
                "type that FSDP2 gathers weights of --dtype in, and layers run in [--dtype]",
                {"bf16", "fp16", "fp32"}));
  in(add_choice(app, "--reduce-dtype", reduce_dtype, "type of gradients in collectives [their own]",
                {"bf16", "fp16", "fp32"}));
  in(app.add_flag("--sequence-parallel", sequence_parallel, "norms and residuals are divided over tp"));
  in(app.add_option("--schedule", schedule, "of the pipeline [1f1b]")->type_name("gpipe|1f1b|interleaved:V|zb"));
  in(add_whole(app, "--micro-batches", micro_batches, "of the pipeline, a step [2*pp]", 1));
  in(app.add_option("--stages", stages, "layers of the language model in each stage [evenly many]")
         ->delimiter(',')
         ->type_name("N[,N]"));
  in(add_choice(app, "--tower", tower, "the vision tower under tp: whole, divided, or whole for its images [shard]",
                {"replicate", "shard", "data"}));
  in(app.add_option("--network", network, "links between the GPUs [the device's own]")
         ->type_name("NAME|FILE")
         ->check(says_something));
}

Layout ParallelArgs::layout() const {
  Layout l;
  if (!mesh.empty() && gpus)
    throw UsageError("--gpus", "cannot be given together with --parallel", "name the replicas as --parallel dp=N,...");
  if (!mesh.empty()) read_mesh(l, mesh);
  if (gpus) l.dp = *gpus;
  if (l.gpus() > most_gpus)
    throw UsageError("--parallel", std::to_string(l.gpus()) + " GPUs are more than " + std::to_string(most_gpus),
                     "give smaller sizes");
  l.shard = choice<Shard>("--shard", shard);
  l.bucket_views = bucket_views;
  l.reshard_after_forward = reshard == "on";
  if (!param_dtype.empty()) l.param_dtype = parse_dtype(param_dtype);
  if (!reduce_dtype.empty()) l.reduce_dtype = parse_dtype(reduce_dtype);
  l.sequence_parallel = sequence_parallel;
  l.tower = tower == "replicate" ? Tower::replicate : tower == "data" ? Tower::data : Tower::shard;
  l.schedule = read_schedule(schedule);
  l.micro_batches = micro_batches;
  for (const std::string& layers : stages) l.stages.push_back(whole_value("--stages", layers, 0, 1 << 16));
  return l;
}

std::string schedule_word(const parallel::Schedule& s) {
  switch (s.kind) {
    case ScheduleKind::gpipe: return "gpipe";
    case ScheduleKind::zero_bubble: return "zb";
    case ScheduleKind::interleaved: return "interleaved:" + std::to_string(s.chunks);
    case ScheduleKind::one_f_one_b: break;
  }
  return "1f1b";
}

std::string layout_flags(const Layout& l) {
  std::string sizes;
  for (const NamedSize& s : mesh_sizes)
    if (l.*(s.size) > 1) sizes += (sizes.empty() ? "" : ",") + std::string(s.name) + "=" + std::to_string(l.*(s.size));
  std::string r = "--parallel " + sizes;
  if (l.shard != Shard::none) r += " --shard " + std::string(name(l.shard));
  if (!l.reshard_after_forward) r += " --reshard-after-forward off";
  if (l.pp == 1) return r;
  r += " --schedule " + schedule_word(l.schedule);
  r += " --micro-batches " + std::to_string(micro_batches(l));
  for (std::size_t i = 0; i < l.stages.size(); ++i) r += (i == 0 ? " --stages " : ",") + std::to_string(l.stages[i]);
  return r;
}

void check_parallel_flags(const GivenFlags& given, const Layout& l, const AskedPhases& phases) {
  const std::string leave = "leave it out, or give --parallel ";
  if (l.gpus() == 1) given.no_effect({"--network"}, "on one GPU", leave + "dp=N");
  if (holders(l) == 1)
    given.no_effect({"--shard", "--ddp-bucket-view", "--reshard-after-forward", "--param-dtype", "--reduce-dtype"},
                    "without data parallelism", leave + "dp=N");
  if (l.tp == 1) given.no_effect({"--sequence-parallel", "--tower"}, "without tensor parallelism", leave + "tp=N");
  if (l.tp > 1 && l.tower != Tower::replicate)
    given.no_effect({"--tower"}, "but for replicate: transformers 5.17's plans leave the tower whole on each rank",
                    "leave it out, or take --tower replicate");
  if (l.pp > 1)
    given.no_effect({"--gradient-accumulation"}, "in a pipeline, whose step has --micro-batches of --batch sequences",
                    "say how many with --micro-batches N");
  if (l.pp == 1) given.no_effect({"--schedule", "--micro-batches", "--stages"}, "without a pipeline", leave + "pp=N");
  if (!phases.training)
    given.no_effect(
        {"--shard", "--ddp-bucket-view", "--reshard-after-forward", "--param-dtype", "--reduce-dtype", "--schedule"},
        phases.words, phases.hint);
  if (l.shard != Shard::none)
    given.no_effect({"--ddp-bucket-view"}, "with --shard, which has no buckets of DistributedDataParallel",
                    "leave it out, or take --shard none");
  if (l.shard != Shard::fsdp2)
    given.no_effect({"--reshard-after-forward", "--param-dtype"}, "without --shard fsdp2",
                    "leave it out, or take --shard fsdp2");
  if (l.shard == Shard::none)
    given.no_effect({"--reduce-dtype"}, "with DistributedDataParallel, which reduces gradients in their own type",
                    "leave it out, or take --shard fsdp2");
}

}  // namespace vlmest::tool
