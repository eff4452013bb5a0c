// Where all nodes of a run come together once it is under way: for their mean, and at the end.
#include <sotto/trainers/optimizer.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/vector.h>
#include <sotto/trainers/meeting.h>

#include "internal/in_turn.h"
#include "internal/run_watch.h"

namespace sotto {
namespace {

std::string mean_key(Round round) { return fmt::format("mean/{}", round); }

}  // namespace

Result<double> Optimizer::mean_model(std::span<float> mean) {
  require_whole_step();
  if (mean.size() != parameters_.size()) {
    refuse("mean", fmt::format("{} elements", mean.size()),
           fmt::format("the parameters have {}", parameters_.size()));
  }
  if (mean_ && mean_->round == round_) {
    refuse("mean", fmt::format("round {}", round_), "it was taken after this step already");
  }
  Status status = connect();
  if (status.ok()) {
    status = drain();
  }
  if (!status.ok()) {
    return status;
  }
  std::vector<float> room;
  std::span<const float> mine;
  {
    const internal::InTurn turn(options_.accelerator.get());
    mine = on_host(parameters_, ops(), room);
  }
  if (Status fault = accelerator_status(); !fault.ok()) {
    return status_ = named(fault);
  }
  Meetings meetings(*session_, options_.rank, options_.nodes, options_.timeout);
  meetings.leave_out(options_.byzantine);
  ByteBuffer found;
  status_ = meetings.meet(round_, mine, 0, [&](const AveragedModel& all) {
    forget_mean();
    found.write(all.consensus_distance);
    found.write_span(std::span<const float>(all.parameters));
  });
  if (!status_.ok()) {
    return status_;
  }
  const auto told = meetings.broadcast(mean_key(round_), found.bytes());
  if (!told.ok()) {
    return status_ = told.status();
  }
  ByteReader in(*told);
  mean_ = Mean{round_, in.read<double>()};
  if (!in.read_into(mean) || !in.finished()) {
    return status_ = named({Fault::malformed, "the mean model has another number of parameters"});
  }
  return mean_->consensus_distance;
}

void Optimizer::forget_mean() {
  if (options_.rank == 0 && mean_) {
    (void)session_->remove(mean_key(mean_->round));
  }
}

Status Optimizer::finish() {
  require_whole_step();
  if (Status status = drain(); !status.ok()) {
    return status;
  }
  if (watch_ && watch_->reporter) {
    watch_->reporter->publish(standing());
  }
  Meetings meetings(*session_, options_.rank, options_.nodes, options_.timeout);
  status_ = meetings.barrier("end");
  if (status_.ok()) {
    forget_mean();
  }
  end_report();
  return status_;
}

}  // namespace sotto
