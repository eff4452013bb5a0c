#include "run_outcome.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "../agreement/run_agreement.h"
#include "../reporting/run_reporter.h"

namespace sotto::internal {
namespace {

/// "node 3: …", "node 3, round 7: …"
bool says_who(std::string_view message) {
  constexpr std::string_view kNode = "node ";
  return message.starts_with(kNode) && message.size() > kNode.size() &&
         message[kNode.size()] >= '0' && message[kNode.size()] <= '9';
}

}  // namespace

Status RunOutcome::named(const Status& status) const {
  return status.with_context(fmt::format("node {}", rank_));
}

Status RunOutcome::ended_by(Status fault) {
  if (fault.ok() || !status_.ok()) {
    return status_;
  }
  refused_ = Status();
  status_ = std::move(fault);
  if (!finished_) {
    status_ = agreement_.give_up(status_);
  }
  reporter_.set_fault(status_);
  return status_;
}

Status RunOutcome::give_up(const Status& cause) {
  if (!status_.ok() || finished_ || cause.ok()) {
    return status_;
  }
  return ended_by(says_who(cause.message()) ? cause : named(cause));
}

bool RunOutcome::keep_open(const Status& status) {
  if (!is_refusal(status) || !status_.ok()) {
    return false;
  }
  refused_ = status;
  return true;
}

void RunOutcome::finish() {
  finished_ = true;
  refused_ = Status();
}

void RunOutcome::leave() {
  if (!refused_.ok()) {
    (void)ended_by(refused_);
  } else if (agreement_.entered() && !finished_ && std::uncaught_exceptions() > exceptions_) {
    (void)give_up({Fault::peer_lost, "an exception ended the program"});
  }
}

}  // namespace sotto::internal
