#include "model_meetings.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/comm/run_keys.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/placed_model.h>

#include "../agreement/run_agreement.h"
#include "run_outcome.h"

namespace sotto::internal {
namespace {

/// Ends in a word, as a number would be the node that alone may read it
/// (comm/zmq/store/store_rules.h).
std::string mean_key(std::uint64_t number) { return fmt::format("mean/{}/model", number); }
/// Under which all own tensors of a gathering lie.
std::string together_key(std::uint64_t number) { return fmt::format("own/{}/together", number); }
std::string given_key(std::uint64_t number) { return fmt::format("given/{}/values", number); }

}  // namespace

ModelMeetings::ModelMeetings(const OptimizerOptions& options, const WholeModel& model,
                             RunAgreement& agreement, RunOutcome& outcome, RoundHandlers rounds)
    : model_(model),
      agreement_(agreement),
      outcome_(outcome),
      rounds_(std::move(rounds)),
      rank_(options.rank),
      nodes_(options.nodes),
      join_(options.join),
      average_(agreement.collectives()),
      placed_(options.placed) {
  average_.leave_out(options.test.byzantine);
  average_.weigh(weight_of_model(options));
  average_.measure_first(model.parameters().size());
}

Status ModelMeetings::take_from_node_0(std::span<float> values) {
  if (Status status = rounds_.connect(); !status.ok() || nodes_ == 1) {
    return status;
  }
  const auto given = agreement_.collectives().broadcast(given_key(gifts_++), std::as_bytes(values));
  if (!given.ok()) {
    return outcome_.ended_by(given.status());
  }
  ByteReader in(*given);
  if (given->size() != values.size_bytes() || !in.read_into(values)) {
    return outcome_.ended_by(
        outcome_.named({Fault::malformed, "node 0 gives another number of values"}));
  }
  return {};
}

Status ModelMeetings::bring_together() {
  if (!placed_ || nodes_ == 1 || placed_->kind != PlacedModel::Kind::experts) {
    return {};
  }
  const auto& own = placed_->own[static_cast<std::size_t>(rank_)];
  std::vector<float> mine(size_of_parts(own));
  read_parts(own, model_.parameters(), mine);
  const auto all = exchange_own(std::as_bytes(std::span(mine)));
  if (!all.ok()) {
    return outcome_.ended_by(all.status());
  }
  const std::vector<Chunk> everyones = placed_->everyones();
  std::vector<float> values(size_of_parts(everyones));
  ByteReader in(*all);
  if (!in.read_into(std::span(values)) || !in.finished()) {
    return outcome_.ended_by(
        outcome_.named({Fault::malformed, "the nodes' own tensors have another length"}));
  }
  if (host_ops().count_non_finite(values).count > 0) {
    return outcome_.ended_by(outcome_.named(
        {Fault::non_finite, "another node's own tensors hold a NaN or an infinity"}));
  }
  write_parts(everyones, values, model_.parameters());
  return {};
}

Result<std::vector<std::byte>> ModelMeetings::exchange_own(std::span<const std::byte> mine) {
  StoreCollectives& collectives = agreement_.collectives();
  const std::uint64_t number = gatherings_++;
  const std::string name = fmt::format("own/{}/tensors", number);
  const auto all = collectives.gather(name, mine);
  if (!all.ok()) {
    return all.status();
  }
  ByteBuffer together;
  for (const auto& one : *all) {
    together.append(one);
  }
  if (rank_ == 0) {
    for (Rank peer = 0; peer < nodes_; ++peer) {
      (void)collectives.store().remove(node_key(name, peer));
    }
    if (number > 0) {  // all have read it, as they are here
      (void)collectives.store().remove(together_key(number - 1));
    }
  }
  return collectives.broadcast(together_key(number), together.bytes());
}

Result<double> ModelMeetings::mean(std::span<float> mean) {
  if (mean.empty()) {
    refuse("mean", "0 elements", fmt::format("the parameters have {}", model_.parameters().size()));
  }
  model_.require_length(mean);
  if (Status status = rounds_.connect(); !status.ok()) {
    return status;
  }
  return meet(mean);
}

Result<double> ModelMeetings::come_to_end(std::span<float> mean) {
  model_.require_length(mean);
  if (!outcome_.status().ok()) {
    return outcome_.status();
  }
  const bool meets_others = !outcome_.finished() && nodes_ > 1;
  const bool outlasts = meets_others && join_ != Join::none;
  if (outlasts || (meets_others && !mean.empty())) {
    if (Status status = rounds_.connect(); !status.ok()) {
      return status;
    }
  }
  if (outlasts) {
    if (Status status = outlast_data(); !status.ok()) {
      return status;
    }
  }
  if (Status status = rounds_.drain(); !status.ok()) {
    return status;
  }
  return mean.empty() ? Result<double>(0.0) : meet(mean);
}

Status ModelMeetings::outlast_data() {
  using Next = UnevenData::Next;
  Vector zeros;
  for (;;) {
    const auto next = agreement_.next_without_data(rounds_.done());
    if (!next.ok()) {
      return outcome_.ended_by(next.status());
    }
    Status status;
    if (*next == Next::nothing) {
      return {};
    }
    if (*next == Next::mean) {
      status = meet({}).status();
    } else {
      if (zeros.empty()) {
        zeros = model_.zeros();
      }
      status = rounds_.step(zeros);
    }
    if (!status.ok() && status.fault() != Fault::ended) {
      return status;
    }
  }
}

Result<double> ModelMeetings::meet(std::span<float> mean) {
  Status status = outcome_.ended_by(agreement_.meetings().come(MeetingPlace::mean, rounds_.done()));
  if (status.ok()) {
    status = rounds_.drain();
  }
  if (status.ok()) {
    status = bring_together();
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<float> room;
  const auto values = model_.on_host(room);
  if (!values.ok()) {
    return outcome_.ended_by(outcome_.named(values.status()));
  }
  auto distance = mean_of(*values, mean);
  return distance.ok() ? distance : Result<double>(outcome_.ended_by(distance.status()));
}

Result<double> ModelMeetings::mean_of(std::span<const float> values, std::span<float> mean) {
  ByteBuffer found;
  const Status met = average_.meet(means_, values, 0, [&](const AveragedModel& all) {
    forget_mean();
    found.write(all.consensus_distance);
    found.write_span(std::span<const float>(all.parameters));
  });
  if (!met.ok()) {
    return met;
  }
  const auto told = agreement_.collectives().broadcast(mean_key(means_), found.bytes());
  if (!told.ok()) {
    return told.status();
  }
  ByteReader in(*told);
  ++means_;
  mean_ = Mean{rounds_.done(), in.read<double>()};
  if (in.remaining() != values.size_bytes() || (!mean.empty() && !in.read_into(mean))) {
    return outcome_.named({Fault::malformed, "the mean model has another number of parameters"});
  }
  agreement_.meetings().leave();
  return mean_->consensus_distance;
}

void ModelMeetings::forget_mean() {
  if (rank_ == 0 && mean_) {
    (void)agreement_.collectives().store().remove(mean_key(means_ - 1));
  }
}

void ModelMeetings::clean_up() {
  if (rank_ != 0) {
    return;
  }
  forget_mean();
  Store& store = agreement_.collectives().store();
  if (gatherings_ > 0) {
    (void)store.remove(together_key(gatherings_ - 1));
  }
  for (std::uint64_t gift = 0; gift < gifts_; ++gift) {
    (void)store.remove(given_key(gift));
  }
}

std::optional<double> ModelMeetings::distance(Round done) const {
  return mean_ && mean_->round == done ? std::optional(mean_->consensus_distance) : std::nullopt;
}

}  // namespace sotto::internal
