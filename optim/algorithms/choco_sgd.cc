#include <sotto/optim/algorithms/choco_sgd.h>

#include <functional>
#include <string_view>
#include <utility>

#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/common_hyperparameters.h>
#include <sotto/optim/exchange/finite_watch.h>
#include <sotto/optim/exchange/neighbours.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

Mailbox difference_mailbox(const LocalNode& node) {
  return node.topology().time_varying() ? ReplicaExchange::make_mailbox(node) : graph_mailbox(node);
}

}  // namespace

ChocoSgd::ChocoSgd(AlgorithmSetup setup)
    : DirectionAlgorithm(kInfo, std::move(setup), difference_mailbox),
      eta_(node_.hyperparameters().real("eta")),
      public_(node_),
      own_direction_(node_.stepper().direction_room()),
      scratch_(node_.scratch()) {
  if (node_.topology().time_varying()) {
    copies_.emplace(node_, mail_, public_.copy, /*lead=*/0);
  }
}

Status ChocoSgd::take(const Direction& d) {
  // 1. x_i^½ = x_i − γ g_i
  half_ = HalfStep(node_.x(), d);
  return send_difference();
}

Status ChocoSgd::step_ahead(const Direction& d, std::span<float> stepped) {
  begin_round();
  half_ = HalfStep(node_.x(), d, stepped);
  return send_difference();
}

Status ChocoSgd::send_difference() {
  const auto x = node_.x();
  const std::span<float> copy = public_.copy;

  // 2. send q_i = C(x_i^½ − x̂_i)
  // 3. x̂_i ← x̂_i + q_i
  const auto difference = [&](std::size_t first, std::span<float> v) {
    half_.write(node_.ops(), first, v.size());
    Combination sum(node_.ops(), v);
    half_.add_to(sum, first, v.size());
    return sum.add(-1, copy.subspan(first, v.size())).write();
  };
  const Compressor::Prepare prepare{
      .make = std::ref(difference), .reads = {x, copy}, .residual = false, .add_to = copy};
  constexpr std::string_view kWhat = "difference to the public copy";
  if (copies_) {
    const auto update = copies_->encode(copy, prepare, scratch_, kWhat);
    if (!update) {
      return update.status();
    }
    copies_->post(*update, copy);
  } else {
    const auto encoded = node_.encoder().encode_made(prepare, scratch_, mail_.outgoing(), kWhat);
    if (!encoded) {
      return encoded.status();
    }
    mail_.post(graph_plan(node_), encoded->size());
  }
  return {};
}

Status ChocoSgd::accept(const Exchange& exchange) {
  if (!copies_) {
    return mail_.accept(exchange);
  }
  // 3. x̂_j ← x̂_j + q_j
  const auto apply = [&](std::span<const std::byte> encoding, std::span<float> copy) {
    return node_.compressor().decode_add(encoding, 1, copy);
  };
  return copies_->accept(exchange, std::ref(apply));
}

Status ChocoSgd::complete(const Exchange& exchange) {
  if (Status status = accept(exchange); !status.ok()) {
    return status;
  }
  FiniteWatch watch(node_);
  const auto step = [&](std::size_t first, std::span<const float> pull) {
    watch.note(this->step(first, pull));
  };
  if (copies_) {
    sum_pull();
    step(0, public_.pull);
  } else if (Status status = public_.take_changes(node_, mail_, scratch_, std::cref(step));
             !status.ok()) {  // p_i ← p_i + Σ_j (W_ij − 1[i = j]) q_j
    return status;
  }
  mail_.close();
  if (Status status = watch.require(node_.x(), "updated model"); !status.ok()) {
    return status;
  }
  node_.finish_round();
  return {};
}

bool ChocoSgd::step(std::size_t first, std::span<const float> pull) {
  // 4. x_i ← x_i^½ + η p_i
  Combination sum(node_.ops(), node_.x().subspan(first, pull.size()));
  half_.add_to(sum, first, pull.size());
  return sum.add(eta_, pull).write();
}

void ChocoSgd::sum_pull() {
  const Ops& ops = node_.ops();
  ops.fill(0, public_.pull);
  for (const Replica& copy : copies()) {
    ops.subtract(ReplicaExchange::value(copy, public_.copy), public_.copy, scratch_);
    ops.axpy(copy.weight, scratch_, public_.pull);
  }
}

AlgorithmCounters ChocoSgd::counters() const {
  return {.saturated = node_.encoder().saturated(),
          .bad_frames = mail_.bad_frames(),
          .drifted = copies_ ? copies_->drifted() : 0};
}

void ChocoSgd::save(ByteBuffer& out) const {
  node_.save(out);
  if (copies_) {
    write_floats(public_.copy, out);
    copies_->save(out);
  } else {
    public_.save(out);
  }
}

Status ChocoSgd::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  if (!copies_) {
    return public_.load(in, "model");
  }
  if (Status status = read_floats(in, "public model", public_.copy); !status.ok()) {
    return status;
  }
  return copies_->load(in);
}

namespace {

constexpr Hyperparameter kChocoHyperparameters[] = {consensus_stepsize(default_eta<2>)};
constexpr std::string_view kChocoPlanned[] = {"quant:8", "quant:4",   "quant:2",
                                              "sign",    "topk:0.05", "topk:0.05,values=2"};

}  // namespace

constinit const AlgorithmInfo ChocoSgd::kInfo = {
    .name = "choco",
    .title = "CHOCO-SGD, compressed gossip",
    .paper = "Koloskova et al. 2019, arXiv:1902.00340, arXiv:1907.09356",
    .rule =
        "x̂_i ← x̂_i + C(x_i − γ g_i − x̂_i); "
        "x_i ← x_i − γ g_i + η Σ_j W_ij (x̂_j − x̂_i)",
    .summary = "any contraction, however strong; cheap on a graph that stays",
    .hyperparameters = kChocoHyperparameters,
    .contract = ContractKind::contraction,
    .graph = GraphNeed::symmetric,
    .graph_change = GraphChange::with_handover,
    .cutting = Cutting::separable,
    .hides_behind = HidesBehind::delayed_gradient,
    .local_steps = {.outer_after_mixing = true},
    .step_rules = {.may_follow_model = true},
    .accelerated = true,
    .pattern = ExchangePattern::neighbours,
    .bytes = "degree · |C|; 4d along a new edge",
    .memory = {.floats = 4, .per_changing_neighbour = 1},
    .default_compressor = "topk:0.1",
    .planned = {.compressors = kChocoPlanned},
    .wire_id = wire_id(AlgorithmId::choco),
    .build = build_algorithm<ChocoSgd>};

}  // namespace sotto
