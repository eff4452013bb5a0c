#include <sotto/optim/algorithms/power_gossip.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/optim/algorithm_info.h>
#include <sotto/optim/exchange/neighbours.h>

namespace sotto {
namespace {

/// A payload is the digest of the basis and the floats.
constexpr std::size_t kDigestBytes = sizeof(std::uint64_t);

LowRankOptions options_of(const LocalNode& node) {
  const auto options = low_rank_options(node.compressor());
  check(options.has_value(), "no other compressor is admitted");
  return *options;
}

std::size_t exact_elements(const std::vector<FactorPiece>& pieces) {
  std::size_t elements = 0;
  for (const FactorPiece& piece : pieces) {
    elements += piece.matrix ? 0 : piece.size;
  }
  return elements;
}

std::vector<FactorPiece> pieces_of(const LocalNode& node, const LowRankOptions& options) {
  return factor_pieces(node.layout(), static_cast<std::size_t>(options.rank),
                       static_cast<std::size_t>(options.steps));
}

/// Floats along an edge, at most.
std::size_t longest_message(const std::vector<FactorPiece>& pieces, const LowRankOptions& options) {
  return PowerLink::longest_product(pieces, static_cast<std::size_t>(options.rank)) +
         exact_elements(pieces);
}

Mailbox product_mailbox(const LocalNode& node) {
  const LowRankOptions options = options_of(node);
  const std::size_t floats = longest_message(pieces_of(node, options), options);
  return {node, max_in_degree(node), kDigestBytes + floats * sizeof(float),
          std::max<std::size_t>(max_in_degree(node), 1)};
}

void require_both_directions(const LocalNode& node) {
  const Topology& graph = node.topology();
  for (Round round = 0; round < graph.period(); ++round) {
    if (!std::ranges::equal(graph.in_edges(node.rank(), round), graph.out_edges(node.rank(), round),
                            {}, &Edge::peer, &Edge::peer)) {
      refuse("topology", graph.name(),
             "powergossip works on what two nodes tell each other, and here one does not hear the "
             "other; use an undirected graph, e.g. ring");
    }
  }
}

}  // namespace

PowerGossip::PowerGossip(AlgorithmSetup setup)
    : MailAlgorithm(kInfo, std::move(setup), product_mailbox),
      options_(options_of(node_)),
      pieces_(pieces_of(node_, options_)),
      exact_(exact_elements(pieces_)),
      steps_(exact_ == node_.dimension() ? 1 : options_.steps),
      links_([this] {
        require_both_directions(node_);
        std::vector<PowerLink> links;
        for (const Rank peer : node_.topology().in_peers(node_.rank())) {
          links.emplace_back(node_.rank(), peer, node_.seed(), options_, pieces_);
        }
        return links;
      }()),
      theirs_(longest_message(pieces_, options_)),
      scratch_(PowerLink::scratch_size(pieces_, rank())),
      mixed_(node_.dimension()),
      next_(node_.dimension()) {
  parcels_.reserve(max_in_degree(node_));
  due_.reserve(max_in_degree(node_));
}

PowerLink& PowerGossip::link(const Edge& edge) {
  return *std::ranges::lower_bound(links_, edge.peer, {}, &PowerLink::peer);
}

template <typename Visit>
void PowerGossip::for_each_exact(Visit&& visit) {
  for (const FactorPiece& piece : pieces_) {
    if (!piece.matrix) {
      visit(std::span(mixed_).subspan(piece.offset, piece.size));
    }
  }
}

void PowerGossip::begin_round() {
  node_.begin_round();
  node_.ops().copy(node_.x(), mixed_);
  for (const Edge& edge : node_.in_edges()) {
    link(edge).begin(node_.round());
  }
  step_ = 0;
  post_step();
}

void PowerGossip::post_step() {
  parcels_.clear();
  due_.clear();
  for (const Edge& edge : node_.out_edges()) {
    PowerLink& link = this->link(edge);
    ByteWriter payload(mail_.outgoing(parcels_.size()));
    const auto product = link.product(mixed_, scratch_);  // 1. X_i B
    payload.write(link.digest());
    payload.write_bytes(std::as_bytes(product));
    std::size_t floats = product.size();
    if (step_ == 0) {
      for_each_exact([&](std::span<float> x) { payload.write_bytes(std::as_bytes(x)); });
      floats += exact_;
    }
    parcels_.push_back({.elements = floats, .payload_bytes = payload.position()});
    due_.push_back(floats);
  }
  mail_.post_each({.tag = {.round = node_.round(), .phase = static_cast<std::uint16_t>(step_)},
                   .compressor = node_.compressor().wire_id(),
                   .to = node_.out_edges(),
                   .from = node_.in_edges(),
                   .elements_by_sender = due_},
                  parcels_);
}

Result<std::span<const float>> PowerGossip::read(std::size_t edge) {
  const auto theirs = std::span(theirs_).first(due_[edge]);
  ByteReader payload(mail_.payload(edge));
  const auto digest = payload.read<std::uint64_t>();
  payload.read_into(theirs);
  if (payload.failed() || !payload.finished()) {
    return Status{Fault::malformed, "its payload is not as long as the product that is due"};
  }
  const PowerLink& link = this->link(mail_.from()[edge]);
  if (digest != link.digest()) {
    return Status{Fault::unexpected,
                  "the two ends of this edge hold different bases: they have another seed, or "
                  "continue from checkpoints of different runs"};
  }
  const Ops& ops = node_.ops();
  if (const NonFinite bad = ops.count_non_finite(theirs); bad.count != 0) {
    return Status{Fault::non_finite, fmt::format("value {} is {}", bad.first, theirs[bad.first])};
  }
  const MinMax range = ops.min_max(theirs.first(link.product_size()));
  const float most = PowerLink::largest_value(rank());
  if (link.product_size() != 0 && (range.min < -most || range.max > most)) {
    return Status{Fault::malformed,
                  fmt::format("its product reaches from {} to {}", range.min, range.max)};
  }
  return std::span<const float>(theirs);
}

Status PowerGossip::complete(const Exchange& exchange) {
  if (Status status =
          mail_.accept(exchange, [this](std::size_t edge) { return read(edge).status(); });
      !status.ok()) {
    return status;
  }
  if (step_ == 0) {
    for_each_exact([&](std::span<float> x) { node_.ops().scale(node_.self_weight(), x); });
  }
  for (std::size_t i = 0; i < mail_.from().size(); ++i) {
    const Edge& edge = mail_.from()[i];
    const auto read = this->read(i);
    check(read.ok(), "a payload that was taken stays as it is");
    PowerLink& link = this->link(edge);
    auto theirs = read->subspan(link.product_size());
    // 2. X_i ← X_i + W_ij C(X_j − X_i)
    link.take(read->first(link.product_size()), edge.weight, mixed_);
    if (step_ == 0) {
      for_each_exact([&](std::span<float> x) {
        node_.ops().axpy(edge.weight, theirs.first(x.size()), x);
        theirs = theirs.subspan(x.size());
      });
    }
  }
  mail_.close();
  if (Status status = node_.require_finite(mixed_, "mixed model"); !status.ok()) {
    return status;
  }
  if (++step_ < steps_) {
    post_step();
  }
  return {};
}

Status PowerGossip::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "PowerGossip takes a gradient after its exchanges");
  // 3. x_i ← x_i − γ g_i
  if (Status status = node_.stepper().step_from(mixed_, gradient, next_); !status.ok()) {
    return status;
  }
  for (const Edge& edge : node_.in_edges()) {
    link(edge).commit();
  }
  node_.finish_round();
  return {};
}

AlgorithmCounters PowerGossip::counters() const {
  AlgorithmCounters counters{.bad_frames = mail_.bad_frames()};
  for (const PowerLink& link : links_) {
    counters.saturated += link.saturated();
  }
  return counters;
}

void PowerGossip::save(ByteBuffer& out) const {
  node_.save(out);
  for (const PowerLink& link : links_) {
    link.save(out);
  }
}

Status PowerGossip::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  for (PowerLink& link : links_) {
    if (Status status = link.load(in); !status.ok()) {
      return status;
    }
  }
  return {};
}

constexpr std::string_view kPowerGossipPlanned[] = {"lowrank:2"};

constinit const AlgorithmInfo PowerGossip::kInfo = {
    .name = "powergossip",
    .title = "PowerGossip, power iteration on neighbours' differences",
    .paper = "Vogels et al. 2020, arXiv:2008.01425",
    .rule =
        "X_i ← X_i + Σ_j W_ij C(X_j − X_i) − γ G_i; C(D) = (D B) Bᵀ; "
        "B ← orth(D B), for D and Dᵀ by turns",
    .summary =
        "large matrices between neighbours: no consensus step to tune, no "
        "replicas, graphs that change",
    .contract = ContractKind::contraction,
    .graph = GraphNeed::symmetric,
    .graph_change = GraphChange::any,
    .hides_behind = HidesBehind::next_gradient,
    .local_steps = {.outer_after_mixing = true},
    .step_rules = {.may_follow_model = true},
    .compressors = {.family = "lowrank"},
    .bytes =
        "degree · 4f, f = Σ K (rows + columns) / 2 over the matrices, times "
        "their steps, and all other elements",
    .memory = {.floats = 2, .of_matrices = "3 K (degree + 1) / shorter side"},
    .default_compressor = "lowrank:1",
    .planned = {.compressors = kPowerGossipPlanned, .products_per_neighbour = 2},
    .wire_id = wire_id(AlgorithmId::powergossip),
    .build = build_algorithm<PowerGossip>};

}  // namespace sotto
