#include <sotto/optim/wrappers/streamed_steps.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/optim/state_io.h>
#include <sotto/optim/wrappers/piece_setup.h>

namespace sotto {
namespace {

/// The setup of a fragment's algorithm.
AlgorithmSetup fragment_part(const AlgorithmSetup& setup, std::uint32_t number,
                             std::span<float> synced, std::unique_ptr<StepRule> outer) {
  AlgorithmSetup part = piece_setup(setup, number, synced, std::move(outer));
  if (synced.size() == setup.parameters.size()) {
    part.layout = setup.layout;
  }
  // Random choices are keyed by round and bucket, of which fragments share some.
  part.seed += number * 0x9E3779B97F4A7C15U;
  return part;
}

/// The outer rule of one fragment.
std::unique_ptr<StepRule> rule_of(AlgorithmSetup& setup, std::uint32_t number) {
  return number == 0 ? std::move(setup.outer_step_rule) : setup.further_outer_rules();
}

}  // namespace

StreamedSteps::StreamedSteps(const AlgorithmInfo& info, AlgorithmSetup setup)
    : NodeAlgorithm(info, stepping_part(setup)),
      interval_(setup.communication_interval),
      streaming_(setup.streaming),
      weighted_(setup.weighted),
      synced_(node_.x(), node_.ops()),
      moved_(node_.vector()),
      work_(node_.vector()) {
  const std::uint32_t count = streaming_.fragments;
  fragments_.reserve(count);
  for (std::uint32_t p = 0; p < count; ++p) {
    const Chunk chunk = chunk_of(node_.dimension(), static_cast<int>(count), static_cast<int>(p));
    auto part = fragment_part(setup, p, chunk.of(std::span<float>(synced_)), rule_of(setup, p));
    fragments_.push_back({.place = chunk,
                          .sent_after = streaming_.sent_after(interval_, p),
                          .inner = info.build(std::move(part))});
  }
  const std::size_t longest = fragments_.front().place.size;
  sent_from_ = Vector(longest, node_.ops());
  handed_ = Vector(longest, node_.ops());
}

std::optional<std::size_t> StreamedSteps::sent_after(Round steps) const {
  if (steps == 0) {
    return std::nullopt;
  }
  const Round of_interval = (steps - 1) % interval_ + 1;
  for (std::size_t p = 0; p < fragments_.size(); ++p) {
    if (fragments_[p].sent_after == of_interval) {
      return p;
    }
  }
  return std::nullopt;
}

Round StreamedSteps::exchanges_in(const Fragment& fragment, Round steps) const {
  return steps < fragment.sent_after ? 0 : (steps - fragment.sent_after) / interval_ + 1;
}

std::optional<std::size_t> StreamedSteps::under_way_after(Round steps) const {
  for (Round ago = 0; ago < streaming_.delay && ago < steps; ++ago) {
    if (const auto sent = sent_after(steps - ago)) {
      return sent;
    }
  }
  return std::nullopt;
}

bool StreamedSteps::applies_next() const {
  const Round steps = node_.round() + 1;
  return current_ && steps > streaming_.delay && sent_after(steps - streaming_.delay) == current_;
}

bool StreamedSteps::accepts_gradient() const {
  return node_.in_round() && !awaits_ &&
         (!applies_next() || fragments_[*current_].inner->parameters_ready());
}

bool StreamedSteps::idle() const {
  return !node_.in_round() && exchanging_ == 0 &&
         (!current_ || fragments_[*current_].inner->idle());
}

Status StreamedSteps::placed(std::size_t fragment, const Status& status) const {
  return status.with_context(fmt::format("node {}, round {}, at an exchange of fragment {} of {}",
                                         node_.rank(), node_.round(), fragment, fragments_.size()));
}

void StreamedSteps::begin_round() {
  check(parameters_ready(), "a round of streamed steps begins at a model");
  node_.begin_round();
}

Status StreamedSteps::take_gradient(std::span<const float> gradient) {
  check(accepts_gradient(), "streamed steps take one gradient a round");
  const bool applies = applies_next();
  if (Status status = step(gradient); !status.ok()) {
    return status;
  }
  if (applies) {
    if (Status status = apply(); !status.ok()) {
      return status;
    }
  }
  const auto fragment = sent_after(node_.round() + 1);
  if (!fragment) {
    node_.finish_round();
    return {};
  }
  if (Status status = send(*fragment); !status.ok()) {
    return status;
  }
  awaits_ = streaming_.delay == 0;
  if (awaits_) {
    return settle();
  }
  node_.finish_round();
  return {};
}

void StreamedSteps::place(std::span<const float> moved) {
  for (std::size_t p = 0; p < fragments_.size(); ++p) {
    const Chunk chunk = fragments_[p].place;
    const auto base = current_ == p ? std::span<const float>(sent_from_).first(chunk.size)
                                    : chunk.of(std::span<const float>(synced_));
    node_.ops().subtract(base, chunk.of(moved), chunk.of(node_.x()));
  }
}

Status StreamedSteps::step(std::span<const float> gradient) {
  // 1. Δ_i ← Δ_i + d(g_i)
  if (Status status = node_.stepper().direction(gradient, work_); !status.ok()) {
    return status;
  }
  node_.ops().axpy(1, moved_, work_);
  place(work_);
  if (Status status = node_.require_finite(node_.x(), "updated model"); !status.ok()) {
    place(moved_);  // as it was
    return status;
  }
  std::swap(moved_, work_);
  return {};
}

Status StreamedSteps::send(std::size_t fragment) {
  const Chunk chunk = fragments_[fragment].place;
  const auto moved = chunk.of(std::span<float>(moved_));
  const auto handed = std::span<float>(handed_).first(chunk.size);
  const Ops& ops = node_.ops();
  ops.copy(chunk.of(std::span<const float>(node_.x())),
           std::span<float>(sent_from_).first(chunk.size));
  ops.copy(moved, handed);
  if (weighted_) {
    ops.scale(node_.terms().share, handed);
    if (Status status = node_.require_finite(handed, "movement since the last exchange");
        !status.ok()) {
      return status;
    }
  }
  ops.fill(0, moved);
  current_ = fragment;
  Algorithm& inner = *fragments_[fragment].inner;
  inner.begin_round();
  const Status status = inner.take_gradient(handed);
  return status.ok() ? status : placed(fragment, status);
}

Status StreamedSteps::apply() {
  const Chunk chunk = fragments_[*current_].place;
  const auto x = chunk.of(node_.x());
  const auto synced = chunk.of(std::span<const float>(synced_));
  const auto moved = chunk.of(std::span<float>(moved_));
  const Ops& ops = node_.ops();
  current_.reset();
  if (!streaming_.mix.carry) {
    // α x + (1 − α) s = s − α (s − x), of which x = s − Δ needs the second part
    if (streaming_.mix.own == 0) {
      ops.fill(0, moved);
    } else {
      ops.subtract(synced, x, moved);
      ops.scale(static_cast<float>(streaming_.mix.own), moved);
    }
  }
  ops.subtract(synced, moved, x);
  return node_.require_finite(x, "model with the others' movements");
}

Status StreamedSteps::settle() {
  if (!awaits_ || !fragments_[*current_].inner->parameters_ready()) {
    return {};
  }
  awaits_ = false;
  if (Status status = apply(); !status.ok()) {
    return status;
  }
  node_.finish_round();
  return {};
}

Result<bool> StreamedSteps::next_exchange(Exchange& out) {
  if (!current_) {
    return false;
  }
  const std::size_t fragment = *current_;
  auto more = fragments_[fragment].inner->next_exchange(out);
  if (!more.ok()) {
    return placed(fragment, more.status());
  }
  exchanging_ += *more ? 1U : 0U;
  if (Status status = settle(); !status.ok()) {
    return status;
  }
  return more;
}

Status StreamedSteps::complete(const Exchange& exchange) {
  check(current_ && exchange.tag.bucket == *current_, "an exchange is of the fragment under way");
  if (Status status = fragments_[*current_].inner->complete(exchange); !status.ok()) {
    return placed(*current_, status);
  }
  --exchanging_;
  return settle();
}

AlgorithmCounters StreamedSteps::counters() const {
  AlgorithmCounters sum;
  for (const Fragment& fragment : fragments_) {
    sum.add(fragment.inner->counters());
  }
  return sum;
}

std::vector<std::string> StreamedSteps::take_warnings() {
  std::vector<std::string> all;
  for (const Fragment& fragment : fragments_) {
    std::ranges::move(fragment.inner->take_warnings(), std::back_inserter(all));
  }
  return all;
}

void StreamedSteps::save(ByteBuffer& out) const {
  node_.save(out);
  out.write(interval_);
  out.write(streaming_.fragments);
  out.write(streaming_.delay);
  write_floats(synced_, out);
  write_floats(moved_, out);
  write_floats(sent_from_, out);
  for (const Fragment& fragment : fragments_) {
    fragment.inner->save(out);
  }
}

Status StreamedSteps::load(ByteReader& in) {
  if (Status status = node_.load(in); !status.ok()) {
    return status;
  }
  const auto interval = in.read<Round>();
  const auto fragments = in.read<std::uint32_t>();
  const auto delay = in.read<Round>();
  if (in.failed() || interval != interval_ || fragments != streaming_.fragments ||
      delay != streaming_.delay) {
    return {
        Fault::malformed,
        fmt::format("checkpoint of a run that exchanges {} fragments every {} rounds with a "
                    "delay of {} where {} every {} with a delay of {} are due",
                    fragments, interval, delay, streaming_.fragments, interval_, streaming_.delay)};
  }
  if (Status status = read_floats(in, "model of the last exchanges", synced_); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "movement since the last exchanges", moved_); !status.ok()) {
    return status;
  }
  if (Status status = read_floats(in, "model as it was sent", sent_from_); !status.ok()) {
    return status;
  }
  for (std::size_t p = 0; p < fragments_.size(); ++p) {
    const Fragment& fragment = fragments_[p];
    if (Status status = fragment.inner->load(in); !status.ok()) {
      return placed(p, status);
    }
    const Round due = exchanges_in(fragment, node_.round());
    if (fragment.inner->round() != due) {
      return {
          Fault::malformed,
          fmt::format("checkpoint of round {} with {} exchanges of fragment {} where {} are due",
                      node_.round(), fragment.inner->round(), p, due)};
    }
  }
  current_ = under_way_after(node_.round());
  awaits_ = false;
  exchanging_ = 0;
  return {};
}

}  // namespace sotto
