#include <sotto/trainers/program_run.h>

#include <utility>

#include <sotto/trainers/node_transport.h>

namespace sotto::internal {

ProgramRounds::ProgramRounds(std::unique_ptr<Algorithm> node, const ProgramSetup& setup,
                             ProgramMeeting meeting)
    : node_(std::move(node)),
      rank_(setup.rank),
      nodes_(setup.nodes),
      meeting_(std::move(meeting)),
      input_(setup.parameters.size()) {}

Status ProgramRounds::connect() {
  TransportOptions options = transport_options(node_->peers(), rank_, nodes_);
  options.store = meeting_.store;
  auto made = make_transport(meeting_.transport, options);
  if (!made.ok()) {
    return made.status();
  }
  transport_ = std::move(*made);
  driver_ = std::make_unique<Driver>(*node_, *transport_, DriverOptions{.rank = rank_});
  return {};
}

Status ProgramRounds::step() {
  if (!driver_ && failed_.ok()) {
    failed_ = connect();
  }
  if (!failed_.ok()) {
    return failed_;
  }
  const Status begun = driver_->begin_round();
  return begun.ok() ? driver_->gradient_ready(input_) : begun;
}

Status ProgramRounds::finish() { return driver_ ? driver_->drain() : failed_; }

}  // namespace sotto::internal
