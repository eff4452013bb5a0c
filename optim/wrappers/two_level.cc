#include <sotto/optim/wrappers/two_level.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/base/names.h>
#include <sotto/base/philox.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/admission.h>
#include <sotto/optim/registry.h>

namespace sotto {
namespace {

/// Exchanges within groups have the bucket 0, those between groups the inner algorithm's and 1.
constexpr std::uint32_t kOwnBucket = 0;

/// Weights are for means over all nodes of what each has, before anything else takes it.
void check_weights(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  const bool local = setup.outer_step_rule != nullptr || setup.communication_interval > 1 ||
                     setup.streaming.on() || setup.outer_after_mixing;
  if (setup.weighted && (local || info.agreement != SettingsAgreement::required)) {
    throw Error("weight",
                "in groups nodes are weighted where each step ends with a mean over all nodes, as "
                "with allreduce without local steps; leave weights out");
  }
  admit_weights_beside_hyperparameters(info, setup);
}

/// Whether the compressor goes by the tensors of a model, in which cosine transforms take blocks.
bool goes_by_tensors(const AlgorithmInfo& info, const Compressor* compressor) {
  const auto own = compressor == nullptr ? make_compressor(info.default_compressor) : nullptr;
  const Compressor& asked = compressor == nullptr ? *own : *compressor;
  return !asked.divisible() || family_name(asked.spec()) == "dct";
}

void check_setup(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  if (setup.step_rule == nullptr || setup.topology == nullptr) {
    throw Error("groups", "they need a step rule and a graph of groups");
  }
  if (setup.nodes != setup.groups->nodes()) {
    throw Error("groups", fmt::format("they have {} nodes, and the job has {}",
                                      setup.groups->nodes(), setup.nodes));
  }
  if (setup.rank < 0 || setup.rank >= setup.nodes) {
    refuse("rank", fmt::to_string(setup.rank),
           fmt::format("with {} nodes it lies in 0 … {}", setup.nodes, setup.nodes - 1));
  }
  if (setup.accelerator) {
    throw Error("groups", "parameters that lie with an accelerator are not trained in groups");
  }
  if (setup.adversary) {
    throw Error("byzantine", "nodes of a group trust each other: attacks are for single nodes");
  }
  check_weights(info, setup);
  if (setup.groups->size() == 1) {
    return;
  }
  if (!setup.step_rule->by_element() ||
      (setup.outer_step_rule != nullptr && !setup.outer_step_rule->by_element())) {
    refuse("step_rule", setup.step_rule->name(),
           "in groups each node steps on a chunk of the model alone: take a rule that takes each "
           "element by itself, such as sgd, adam or adamw without clip_norm");
  }
  if (goes_by_tensors(info, setup.compressor.get())) {
    refuse("compressor",
           setup.compressor == nullptr ? std::string(info.default_compressor)
                                       : setup.compressor->spec(),
           "in groups each node sends a chunk of the model, which is not along tensors: take an "
           "algorithm and a compressor that treat all elements alike, such as dcd with quant:4");
  }
}

/// The part of `setup` for the exchanges within the group.
AlgorithmSetup node_part(const AlgorithmInfo& info, const AlgorithmSetup& setup) {
  check_setup(info, setup);
  AlgorithmSetup part;
  part.rank = setup.rank;
  part.nodes = setup.nodes;
  part.parameters = setup.parameters;
  part.layout = complete_layout(setup.layout, setup.parameters.size());
  part.step_rule = make_step_rule({.learning_rate = 1}, *setup.ops);
  part.compressor = make_compressor("none");
  part.ops = setup.ops;
  part.terms = setup.terms;
  part.terms->agreement = SettingsAgreement::required;  // members step on one model
  part.seed = setup.seed;
  part.run_id = setup.run_id;
  return part;
}

/// The rest, for the member `position` of `group` among its like.
AlgorithmSetup inner_part(AlgorithmSetup setup, std::shared_ptr<RoundTerms> terms) {
  setup.terms = std::move(terms);
  const NodeGroups& groups = *setup.groups;
  const int position = groups.position_of(setup.rank);
  setup.parameters =
      chunk_of(setup.parameters.size(), groups.size(), position).of(setup.parameters);
  if (groups.size() > 1) {
    setup.layout = {};
    // Members of a group round by numbers of their own, and frames of one chunk are no other's.
    const auto words =
        RandomKey{.seed = setup.seed, .rank = position, .purpose = Purpose::select}.block(0);
    setup.seed ^= position == 0 ? 0 : words[0] | (std::uint64_t{words[1]} << 32U);
    setup.run_id ^= position == 0 ? 0 : words[2] | (std::uint64_t{words[3]} << 32U);
  }
  setup.rank = groups.group_of(setup.rank);
  setup.nodes = groups.count();
  setup.groups = nullptr;
  setup.privacy = nullptr;  // it is about the node's own gradient, in front of the group's mean
  setup.weighted = false;
  return setup;
}

std::vector<Edge> other_members(const NodeGroups& groups, Rank rank) {
  std::vector<Edge> others;
  for (const Rank member : groups.members(groups.group_of(rank))) {
    if (member != rank) {
      others.push_back({.peer = member});
    }
  }
  return others;
}

/// Adds ranks to a sorted list.
void merge(const std::vector<Rank>& more, std::vector<Rank>& into) {
  into.insert(into.end(), more.begin(), more.end());
  std::ranges::sort(into);
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

TwoLevel::TwoLevel(const AlgorithmInfo& info, const std::string& spec, AlgorithmSetup setup,
                   std::vector<std::string>* warnings)
    : NodeAlgorithm(info, node_part(info, setup)),
      groups_(setup.groups),
      group_(groups_->group_of(node_.rank())),
      position_(groups_->position_of(node_.rank())),
      size_(groups_->size()),
      exact_(node_.make_exact()),
      others_(other_members(*groups_, node_.rank())),
      mail_(node_, others_.size(),
            std::vector<std::size_t>(std::max<std::size_t>(1, others_.size()),
                                     exact_->max_bytes(longest_chunk(node_.dimension(), size_)))),
      mean_(chunk(position_).size),
      taken_(longest_chunk(node_.dimension(), size_)),
      inner_terms_(std::make_shared<RoundTerms>(node_.terms())),
      inner_(make_algorithm(spec, inner_part(std::move(setup), inner_terms_), warnings)) {
  check(inner_->parameters().data() == chunk(position_).of(node_.x()).data(),
        "the inner algorithm's model is the node's chunk");
  for (std::size_t edge = 0; edge < others_.size(); ++edge) {
    elements_.push_back(chunk(position_of(edge)).size);
  }
  parcels_.resize(others_.size());
  node_.terms().reserve(inner_->peers().from.size());
}

int TwoLevel::position_of(std::size_t edge) const {
  const int position = static_cast<int>(edge);
  return position < position_ ? position : position + 1;
}

Peers TwoLevel::peers() const {
  Peers peers = inner_->peers();
  std::vector<Rank> members;
  members.reserve(others_.size());
  for (const Edge& other : others_) {
    members.push_back(other.peer);
  }
  for (auto* ranks : {&peers.to, &peers.from}) {
    for (Rank& rank : *ranks) {
      rank = groups_->rank_of(rank, position_);
    }
    merge(members, *ranks);
  }
  peers.max_frame_bytes = std::max(peers.max_frame_bytes, mail_.max_frame_bytes());
  peers.frames_a_round += 2;
  return peers;
}

void TwoLevel::begin_round() {
  node_.begin_round();
  inner_terms_->stamp = node_.terms().stamp;
  inner_terms_->agreed_rate = node_.terms().agreed_rate;
  inner_->begin_round();
}

Status TwoLevel::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "a round takes one gradient");
  if (Status status = node_.require_finite(gradient, "gradient"); !status.ok()) {
    return status;
  }
  gradient_ = gradient;
  if (others_.empty()) {
    std::ranges::copy(gradient, mean_.begin());
    stage_ = Stage::averaged;
  } else {
    scatter(gradient);
    stage_ = Stage::scatters;
  }
  return {};
}

// 1. each other member gets its chunk of the gradient
void TwoLevel::scatter(std::span<const float> gradient) {
  for (std::size_t edge = 0; edge < others_.size(); ++edge) {
    const auto part = chunk(position_of(edge)).of(gradient);
    parcels_[edge] = {.elements = part.size(),
                      .payload_bytes = exact_->encode(part, {}, mail_.outgoing(edge))};
  }
  mail_.post_each({.tag = {node_.round(), kScatter, kOwnBucket},
                   .compressor = exact_->wire_id(),
                   .to = others_,
                   .from = others_,
                   .elements_in = mean_.size()},
                  parcels_);
}

Status TwoLevel::average(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  const Ops& ops = node_.ops();
  ops.fill(0, mean_);
  const auto add_own = [&] { ops.axpy(1, chunk(position_).of(gradient_), mean_); };
  for (std::size_t edge = 0; edge < others_.size(); ++edge) {
    if (position_of(edge) == position_ + 1) {
      add_own();
    }
    if (Status status = exact_->decode_add(mail_.payload(edge), 1, mean_); !status.ok()) {
      return mail_.refuse(edge, status);
    }
  }
  if (position_ == size_ - 1) {
    add_own();
  }
  mail_.close();
  ops.scale(1.0F / static_cast<float>(size_), mean_);
  stage_ = Stage::averaged;
  return {};
}

// 3. all other members get this node's chunk of the model
void TwoLevel::gather() {
  const std::size_t bytes = exact_->encode(inner_->parameters(), {}, mail_.outgoing());
  mail_.post({.tag = {node_.round(), kGather, kOwnBucket},
              .compressor = exact_->wire_id(),
              .to = others_,
              .from = others_,
              .elements_out = mean_.size(),
              .elements_by_sender = elements_},
             bytes);
}

Status TwoLevel::take_chunks(const Exchange& exchange) {
  if (Status status = mail_.accept(exchange); !status.ok()) {
    return status;
  }
  for (std::size_t edge = 0; edge < others_.size(); ++edge) {
    const auto came = std::span(taken_).first(elements_[edge]);
    std::ranges::fill(came, 0.0F);
    if (Status status = exact_->decode_add(mail_.payload(edge), 1, came); !status.ok()) {
      return mail_.refuse(edge, status);
    }
    std::ranges::copy(came, chunk(position_of(edge)).of(node_.x()).begin());
  }
  mail_.close();
  return {};
}

Result<bool> TwoLevel::next_exchange(Exchange& out) {
  if (!inner_is_first() && mail_.next_exchange(out)) {
    return true;
  }
  // 2. the inner algorithm takes ḡ_a
  if (stage_ == Stage::averaged && inner_->accepts_gradient()) {
    stage_ = Stage::mixes;
    if (Status status = inner_->take_gradient(mean_); !status.ok()) {
      return placed(status);
    }
  }
  auto due = inner_->next_exchange(out);
  if (!due.ok()) {
    return placed(due.status());
  }
  if (*due) {
    to_nodes(out);
    return true;
  }
  if (stage_ == Stage::mixes && inner_->parameters_ready() && inner_->round() > node_.round()) {
    if (others_.empty()) {
      stage_ = Stage::waits;
      node_.finish_round();
      return false;
    }
    stage_ = Stage::gathers;
    gather();
    return mail_.next_exchange(out);
  }
  return false;
}

bool TwoLevel::inner_is_first() const {
  return stage_ == Stage::scatters && !inner_->accepts_gradient();
}

void TwoLevel::to_nodes(Exchange& exchange) const {
  exchange.tag.bucket += 1;
  for (Send& send : exchange.sends) {
    send.to = groups_->rank_of(send.to, position_);
  }
  for (Receive& receive : exchange.receives) {
    receive.from = groups_->rank_of(receive.from, position_);
  }
  std::ranges::sort(exchange.sends, {}, &Send::to);
  std::ranges::sort(exchange.receives, {}, &Receive::from);
}

Status TwoLevel::complete(const Exchange& exchange) {
  if (exchange.tag.bucket == kOwnBucket) {
    if (stage_ == Stage::scatters) {
      return average(exchange);
    }
    if (Status status = take_chunks(exchange); !status.ok()) {
      return status;
    }
    stage_ = Stage::waits;
    node_.finish_round();
    return {};
  }
  inner_exchange_ = exchange;
  inner_exchange_.tag.bucket -= 1;
  for (Send& send : inner_exchange_.sends) {
    send.to = groups_->group_of(send.to);
  }
  for (Receive& receive : inner_exchange_.receives) {
    receive.from = groups_->group_of(receive.from);
  }
  std::ranges::sort(inner_exchange_.sends, {}, &Send::to);
  std::ranges::sort(inner_exchange_.receives, {}, &Receive::from);
  const Status status = inner_->complete(inner_exchange_);
  hand_on_differences();
  return placed(status);
}

void TwoLevel::hand_on_differences() {
  RoundTerms& terms = node_.terms();
  for (SettingsDifference difference : inner_terms_->news) {
    difference.peer = groups_->rank_of(difference.peer, position_);
    terms.news.push_back(difference);
  }
  inner_terms_->news.clear();
  terms.differing_frames += std::exchange(inner_terms_->differing_frames, 0);
}

AlgorithmCounters TwoLevel::counters() const {
  AlgorithmCounters counters = inner_->counters();
  counters.bad_frames += mail_.bad_frames();
  return counters;
}

Status TwoLevel::placed(const Status& status) const {
  return status.with_context(
      fmt::format("between groups, of which node {} is in number {}", node_.rank(), group_));
}

void TwoLevel::save(ByteBuffer& out) const {
  node_.save(out);
  inner_->save(out);
}

Status TwoLevel::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  stage_ = Stage::waits;
  if (Status status = inner_->load(in); !status.ok()) {
    return status;
  }
  if (inner_->round() != node_.round()) {
    return {Fault::malformed, fmt::format("checkpoint between groups in round {} where {} is due",
                                          inner_->round(), node_.round())};
  }
  return {};
}

}  // namespace sotto
