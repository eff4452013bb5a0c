#include <sotto/groups/program.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/frame.h>
#include <sotto/base/xxh3.h>
#include <sotto/compress/none.h>
#include <sotto/optim/step_rule.h>

namespace sotto {
namespace {

AlgorithmSetup local_setup(const ProgramSetup& setup) {
  AlgorithmSetup local;
  local.rank = setup.rank;
  local.nodes = setup.nodes;
  local.parameters = setup.parameters;
  local.layout = one_tensor(setup.parameters.size());
  local.step_rule = make_step_rule({});
  local.compressor = make_none();
  local.seed = setup.seed;
  local.run_id = setup.run_id;
  local.terms = std::make_shared<RoundTerms>();
  local.terms->agreement = SettingsAgreement::required;
  return local;
}

bool takes_part(const Collective& collective) {
  const ExchangeVolume volume = collective.volume();
  return !volume.sent.empty() || !volume.received.empty();
}

/// Every peer once, ascending.
std::vector<Rank> peers_in(const std::map<Rank, EdgeVolume>& edges) {
  std::vector<Rank> peers;
  peers.reserve(edges.size());
  for (const auto& [peer, edge] : edges) {
    peers.push_back(peer);
  }
  return peers;
}

}  // namespace

ProgramAlgorithm::ProgramAlgorithm(const ProgramSetup& setup, const BuildProgram& build)
    : NodeAlgorithm(kInfo, local_setup(setup)),
      grid_(setup.grid, setup.nodes),
      program_(build(ProgramNode(node_, grid_))) {
  place_collectives();
}

void ProgramAlgorithm::place_collectives() {
  std::string list = grid_.text();
  std::set<const Collective*> seen;
  std::uint64_t parts = 0;
  for (const ProgramStage& stage : program_->stages()) {
    list += fmt::format("\n{}", stage.name);
    takes_part_.push_back(stage.collective != nullptr && takes_part(*stage.collective));
    if (stage.collective == nullptr) {
      continue;
    }
    Collective& collective = *stage.collective;
    if (!seen.insert(&collective).second) {
      refuse("stages", stage.name,
             "its collective has a place in the list already; make one for each stage");
    }
    list += ": " + collective.signature();
    collective.place({.phase = phases_, .part = static_cast<std::uint32_t>(parts)});
    phases_ += collective.phases();
    parts += collective.parts();
    if (phases_ > kMostPhases || parts > kMostParts) {
      refuse("stages", stage.name,
             fmt::format("with it a round has {} phases and {} roundings, and it can have {} and "
                         "{}; take fewer stages, larger blocks, or direct forms",
                         phases_, parts, kMostPhases, kMostParts));
    }
  }
  digest_ = xxh3(std::as_bytes(std::span(list)));
  node_.terms().stamp = stamp_of_settings(list);
}

ExchangeVolume ProgramAlgorithm::volume() const {
  ExchangeVolume sum;
  for (const ProgramStage& stage : program_->stages()) {
    if (stage.collective != nullptr) {
      sum += stage.collective->volume();
    }
  }
  return sum;
}

Peers ProgramAlgorithm::peers() const {
  const ExchangeVolume all = volume();
  Peers peers{.to = peers_in(all.sent),
              .from = peers_in(all.received),
              .max_frame_bytes = kFrameHeaderBytes,
              .frames_a_round = 0};
  for (const ProgramStage& stage : program_->stages()) {
    if (stage.collective != nullptr) {
      peers.max_frame_bytes = std::max(peers.max_frame_bytes, stage.collective->max_frame_bytes());
      peers.frames_a_round += stage.collective->frames_a_peer();
    }
  }
  peers.frames_a_round = std::max<std::size_t>(1, peers.frames_a_round);
  return peers;
}

Status ProgramAlgorithm::in_stage(const Status& status) const {
  return status.ok() ? status : status.with_context("stage " + stage().name);
}

Status ProgramAlgorithm::take_gradient(std::span<const float> gradient) {
  if (!failed_.ok()) {
    return failed_;
  }
  check(accepts_gradient(), "a program takes one gradient a round");
  check(gradient.size() == node_.dimension(), "a gradient has the dimension of the parameters");
  if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
    return status;
  }
  input_ = {.round = node_.round(), .gradient = gradient};
  at_ = 0;
  running_ = true;
  return advance();
}

Status ProgramAlgorithm::advance() {
  const auto stages = program_->stages();
  for (; at_ < stages.size(); ++at_) {
    if (Status status = stage().compute ? stage().compute(input_) : Status(); !status.ok()) {
      running_ = false;
      return failed_ = in_stage(status);
    }
    if (stage().collective != nullptr) {
      if (stage().collective->busy()) {
        return {};
      }
      if (takes_part_[at_] && !stage().optional) {
        running_ = false;
        return failed_ =
                   in_stage(node_.fault(Fault::unexpected,
                                        "its computation has not begun its collective, for which "
                                        "other members of the group wait"));
      }
    }
  }
  running_ = false;
  node_.finish_round();
  return {};
}

Result<bool> ProgramAlgorithm::next_exchange(Exchange& out) {
  if (!running_) {
    return false;
  }
  auto next = stage().collective->next_exchange(out);
  return next.ok() ? std::move(next) : Result<bool>(in_stage(next.status()));
}

Status ProgramAlgorithm::explained(const Status& status, const Exchange& exchange) const {
  for (const Receive& receive : exchange.receives) {
    const auto view = parse_frame(receive.frame());
    if (status.fault() == Fault::unexpected && view.ok() &&
        view->header.settings != node_.terms().stamp) {
      return node_.fault(
          Fault::unexpected,
          fmt::format("node {} runs another list of stages than this node; give all nodes the same "
                      "grid, stages, sizes and compressors",
                      receive.from));
    }
  }
  return status;
}

Status ProgramAlgorithm::complete(const Exchange& exchange) {
  if (!running_) {
    return node_.fault(Fault::unexpected, "no such exchange is under way");
  }
  if (Status status = stage().collective->complete(exchange); !status.ok()) {
    return in_stage(explained(status, exchange));
  }
  if (stage().collective->busy()) {
    return {};
  }
  ++at_;
  return advance();
}

double ProgramAlgorithm::flops_behind(const ExchangeTag& /*tag*/) const {
  if (!running_ || !stage().collective->on_last_phase()) {
    return 0;
  }
  double flops = 0;
  const auto stages = program_->stages();
  for (std::size_t next = at_ + 1; next < stages.size(); ++next) {
    flops += stages[next].flops;
    if (takes_part_[next]) {
      break;
    }
  }
  return flops;
}

double ProgramAlgorithm::flops_in_front() const {
  double flops = 0;
  const auto stages = program_->stages();
  for (std::size_t at = 0; at < stages.size(); ++at) {
    flops += stages[at].flops;
    if (takes_part_[at]) {
      break;
    }
  }
  return flops;
}

AlgorithmCounters ProgramAlgorithm::counters() const {
  AlgorithmCounters sum;
  for (const ProgramStage& stage : program_->stages()) {
    if (stage.collective != nullptr) {
      sum.saturated += stage.collective->saturated();
      sum.bad_frames += stage.collective->bad_frames();
    }
  }
  return sum;
}

void ProgramAlgorithm::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(digest_);
  program_->save(out);
  for (const ProgramStage& stage : program_->stages()) {
    if (stage.collective != nullptr) {
      stage.collective->save(out);
    }
  }
}

Status ProgramAlgorithm::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (in.read<std::uint64_t>() != digest_) {
    return {Fault::malformed,
            "the checkpoint is of another list of stages; go on with the one that wrote it"};
  }
  Status status = program_->load(in);
  for (const ProgramStage& stage : program_->stages()) {
    if (status.ok() && stage.collective != nullptr) {
      status = stage.collective->load(in);
    }
  }
  return status;
}

constinit const AlgorithmInfo ProgramAlgorithm::kInfo = {
    .name = "program",
    .title = "A list of collectives within groups",
    .paper = "",
    .rule = "what its stages compute",
    .summary = "exchanges within groups of nodes, inside a round",
    .graph_change = GraphChange::any,
    .agreement = SettingsAgreement::required,
    .bytes = "the sum over its collectives",
    .memory = {},
    .default_compressor = "none",
    .wire_id = wire_id(AlgorithmId::program)};

}  // namespace sotto
