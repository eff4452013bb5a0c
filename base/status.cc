#include <sotto/base/status.h>

#include <fmt/format.h>

namespace sotto {

std::string_view fault_name(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::malformed:
      return "malformed";
    case Fault::unexpected:
      return "unexpected";
    case Fault::non_finite:
      return "non_finite";
    case Fault::peer_lost:
      return "peer_lost";
    case Fault::deadline:
      return "deadline";
    case Fault::io:
      return "io";
    case Fault::ended:
      return "ended";
    case Fault::budget:
      return "budget";
    case Fault::stopped:
      return "stopped";
    case Fault::backlog:
      return "backlog";
  }
  return "unknown";
}

Status Status::with_context(std::string_view context) const {
  return ok() ? *this : Status(fault_, fmt::format("{}: {}", context, message_));
}

Status naming_timeout(const Status& status, std::chrono::milliseconds timeout) {
  if (status.fault() != Fault::deadline) {
    return status;
  }
  return {Fault::deadline, fmt::format("{} (the timeout is {} s)", status.message(),
                                       std::chrono::duration<double>(timeout).count())};
}

}  // namespace sotto
