#include "consensus.h"

namespace sotto::internal {

Consensus::Consensus(Store& store, const OptimizerOptions& options)
    : join_(options.join),
      news_(store),
      meetings_(store, options.rank, options.nodes, options.timeout),
      whereabouts_(store, news_, options.rank),
      stop_(store, news_, meetings_, options.rank, options.nodes, options.stop),
      data_(store, news_, options.rank, options.nodes, options.timeout, options.interrupted) {
  meetings_.leave_out(options.byzantine);
  meetings_.weigh(weight_of_model(options));
  meetings_.look_with([this](Rank peer) { return look(std::span(&peer, 1)); });
  meetings_.miss_with([this](Rank peer) { return look_for_lost(peer); });
}

Status Consensus::begin_round(Round done) {
  Status status = stop_.begin(done);
  ended_ = status.fault() == Fault::ended;
  return status;
}

Status Consensus::enter_round(Round round) {
  whereabouts_.enter_round(round);
  return join_ == Join::zeros && !out_of_data_ ? data_.enter_round(round) : Status();
}

Status Consensus::look_in_round(std::span<const Rank> peers) {
  const Status cause = news_.any() ? meetings_.given_up() : Status();
  return cause.ok() ? look(peers) : cause;
}

Status Consensus::look_for_lost(Rank awaited) {
  Status lost = lost_ ? lost_(awaited) : Status();
  if (lost.ok() || awaited != 0) {
    lost_until_.reset();
    return lost;
  }
  // Where node 0 is waited for, the neighbour may have done its part before it was lost.
  constexpr std::chrono::seconds kGrace{1};
  if (!lost_until_) {
    lost_until_ = Deadline::after(kGrace);
  }
  return lost_until_->expired() ? lost : Status();
}

Status Consensus::look(std::span<const Rank> peers) {
  stop_.look();
  if (!news_.any()) {
    return {};
  }
  if (join_ == Join::zeros) {
    if (Status status = data_.look(); !status.ok()) {
      return status;
    }
  }
  for (const Rank peer : peers) {
    if (Status status = whereabouts_.look(peer); !status.ok()) {
      return status;
    }
  }
  return {};
}

Result<UnevenData::Next> Consensus::next_without_data(Round done) {
  if (!out_of_data_) {
    out_of_data_ = true;
    if (Status status = data_.leave(done); !status.ok()) {
      return status;
    }
    if (join_ == Join::stop) {
      stop_.ask(EndReason::out_of_data);
    }
  }
  // Where the run is to end, all agree before a round whether there is one.
  const auto stops = [this] {
    stop_.look();
    return !ended_ && stop_.wanted();
  };
  return data_.await(done, whereabouts_, meetings_, stops);
}

}  // namespace sotto::internal
