#include "run_agreement.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/trainers/files/saved_model.h>

namespace sotto::internal {
namespace {

/// Bound on the settings that a peer may send.
constexpr std::size_t kMostAgreement = std::size_t{1} << 20;

}  // namespace

RunAgreement::RunAgreement(Session& session, const OptimizerOptions& options)
    : session_(session),
      rank_(options.rank),
      nodes_(options.nodes),
      timeout_(options.timeout),
      join_(options.join),
      news_(session),
      collectives_(session, options.rank, options.nodes, options.timeout),
      meetings_(session, news_, options.rank),
      stop_(session, news_, collectives_, options.rank, options.nodes, options.stop),
      data_(session, news_, options.rank, options.nodes, options.timeout, options.interrupted) {
  collectives_.look_with([this](Rank peer) { return wait_fault(std::span(&peer, 1)); });
  collectives_.miss_with([this](Rank peer) { return lost_neighbour(peer); });
}

Status RunAgreement::named(const Status& status) const {
  return status.with_context(fmt::format("node {}", rank_));
}

Status RunAgreement::agree(const std::function<Result<StartingPoint>()>& start) {
  if (Status status = naming_timeout(session_.enter(), timeout_); !status.ok()) {
    if (rank_ == 0) {
      collectives_.fault_notice().give_up(status);
    }
    return status;
  }
  entered_ = true;
  const auto mine = start();
  if (!mine.ok()) {
    Status cause = named(mine.status());
    collectives_.fault_notice().give_up(cause);
    return cause;
  }
  if (Status status = compare(*mine); !status.ok()) {
    if (status.fault() == Fault::unexpected) {
      collectives_.fault_notice().give_up(status);
    }
    return status;
  }
  Status status = collectives_.barrier("agreed");
  if (rank_ == 0 && status.fault() == Fault::deadline) {
    collectives_.fault_notice().give_up(status);
  }
  return status;
}

Status RunAgreement::compare(const StartingPoint& mine) {
  if (rank_ == 0) {
    ByteBuffer card;
    card.write_string(mine.agreement);
    card.write(mine.done);
    if (mine.done == 0) {
      card.write_string(mine.parameters);
    }
    return session_.set("hello", card.bytes());
  }
  const auto shown = collectives_.await("hello", 0);
  if (!shown.ok()) {
    return shown.status();
  }
  ByteReader there(*shown);
  const std::string theirs = there.read_string(kMostAgreement);
  if (there.failed()) {
    return named(
        {Fault::malformed,
         fmt::format("what node 0 shows holds no settings of at most {} bytes", kMostAgreement)});
  }
  const std::string difference = first_difference(mine.agreement, theirs);
  if (!difference.empty()) {
    return named({Fault::unexpected, fmt::format("other settings than node 0: {}", difference)});
  }
  if (const auto done = there.read<Round>(); mine.done != done) {
    return named({Fault::unexpected,
                  fmt::format("it has {} rounds done, and node 0 has {}: load what all nodes saved "
                              "after the same round",
                              mine.done, done)});
  }
  if ((mine.done == 0 && mine.parameters != there.read_string(64)) || !there.finished()) {
    return named({Fault::unexpected,
                  "other initial parameters than node 0: start all nodes from equal ones, of one "
                  "random seed that is set before the model is made, or of one file"});
  }
  return {};
}

Result<float> RunAgreement::share(double weight) {
  ByteBuffer mine;
  mine.write(weight);
  const auto all = collectives_.gather("weight", mine.bytes());
  if (!all.ok()) {
    return all.status();
  }
  double sum = 0;
  for (std::size_t node = 0; node < all->size(); ++node) {
    ByteReader in((*all)[node]);
    const auto other = in.read<double>();
    if (!in.finished() || !is_weight(other)) {
      Status cause =
          named({Fault::malformed,
                 fmt::format("node {} counts itself by {}, which is no weight", node, other)});
      collectives_.fault_notice().give_up(cause);
      return cause;
    }
    sum += other;
  }
  ByteBuffer decided;
  decided.write(sum);
  const auto told = collectives_.broadcast("weights", decided.bytes());
  if (!told.ok()) {
    return told.status();
  }
  const double total = ByteReader(*told).read<double>();
  const float share = share_of_weight(weight, total, nodes_);
  if (!std::isfinite(share) || !(share > 0)) {
    return named({Fault::malformed, fmt::format("the nodes' weights sum up to {}", total)});
  }
  return share;
}

Status RunAgreement::begin_round(Round done) {
  Status status = stop_.begin(done);
  ended_ = status.fault() == Fault::ended;
  return status;
}

Status RunAgreement::enter_round(Round round) {
  meetings_.enter_round(round);
  return join_ == Join::zeros && !out_of_data_ ? data_.enter_round(round) : Status();
}

Status RunAgreement::given_up() {
  return news_.any() ? collectives_.fault_notice().given_up() : Status();
}

Status RunAgreement::lost_neighbour(Rank awaited) {
  Status lost = lost_ ? lost_(awaited) : Status();
  if (lost.ok() || awaited != 0) {
    lost_until_.reset();
    return lost;
  }
  // While this node waits for node 0, the neighbour may have done its part before it was lost.
  constexpr std::chrono::seconds kGrace{1};
  if (!lost_until_) {
    lost_until_ = Deadline::after(kGrace);
  }
  return lost_until_->expired() ? lost : Status();
}

Status RunAgreement::wait_fault(std::span<const Rank> peers) {
  stop_.listen();
  if (!news_.any()) {
    return {};
  }
  if (join_ == Join::zeros) {
    if (Status status = data_.round_fault(); !status.ok()) {
      return status;
    }
  }
  for (const Rank peer : peers) {
    if (Status status = meetings_.wait_fault(peer); !status.ok()) {
      return status;
    }
  }
  return {};
}

Result<UnevenData::Next> RunAgreement::next_without_data(Round done) {
  if (!out_of_data_) {
    out_of_data_ = true;
    if (Status status = data_.leave(done); !status.ok()) {
      return status;
    }
    if (join_ == Join::stop) {
      stop_.ask(EndReason::out_of_data);
    }
  }
  // Before the round that may be the last, all nodes agree whether it takes place.
  const auto stops = [this] {
    stop_.listen();
    return !ended_ && stop_.wanted();
  };
  return data_.await(done, meetings_, collectives_.fault_notice(), stops);
}

Status RunAgreement::give_up(const Status& fault) {
  if (!entered_) {
    return fault;
  }
  const bool of_others = fault.fault() == Fault::peer_lost || fault.fault() == Fault::deadline;
  const Status cause = collectives_.fault_notice().given_up_or(fault);
  if (!of_others || cause.ok()) {
    return fault;
  }
  // A gradient that was refused is for another one to follow only where it was taken.
  return is_refusal(cause) ? Status(Fault::peer_lost, cause.message()) : cause;
}

}  // namespace sotto::internal
