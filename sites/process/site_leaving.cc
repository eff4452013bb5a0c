#include <sotto/sites/process/site_leaving.h>

#include <algorithm>

#include <fmt/format.h>

namespace sotto {
namespace {

constexpr std::chrono::milliseconds kLeaveSlice{20};

/// Pumps at least once, and until `done`, or the deadline.
template <typename Done>
Status pump_until(const LeavingSite& leaver, Deadline deadline, const Done& done) {
  Status status = leaver.pump({});
  while (status.ok() && !done() && !deadline.expired() && !leaver.cut()) {
    status = leaver.pump(std::min<Deadline::Clock::duration>(kLeaveSlice, deadline.left()));
  }
  return status;
}

/// A round without a step, which takes in what is under way to this site.
Status pass_on(const LeavingSite& leaver, Deadline deadline) {
  if (Status status = leaver.site.offer(); !status.ok()) {
    return status;
  }
  if (Status status = leaver.commit(); !status.ok()) {
    return status;
  }
  if (Status status = pump_until(leaver, deadline, [&] { return leaver.site.complete(); });
      !status.ok()) {
    return status;
  }
  return leaver.site.collect();
}

/// Whether the site still holds what another node could take.
bool owes(const LeavingSite& leaver) {
  return leaver.gives_all && !leaver.site.has_left() && leaver.site.state().mass > 0 &&
         leaver.roster.others_up() > 0;
}

void tell_what_is_lost(const LeavingSite& leaver) {
  const sites::SiteState state = leaver.site.state();
  if (state.undelivered > 0) {
    leaver.reporter.tell(
        SiteEvent::Level::warning, SiteEvent::Kind::undelivered,
        fmt::format("leaves before its heir has confirmed the mass of {:.3f} that it was given",
                    state.undelivered));
  } else if (owes(leaver)) {
    leaver.reporter.tell(
        SiteEvent::Level::warning, SiteEvent::Kind::undelivered,
        fmt::format("leaves with the mass of {:.3f}, which no neighbour could take", state.mass));
  }
}

}  // namespace

Status leave_run(const LeavingSite& leaver) {
  const auto patience = leaver.roster.leave_patience();
  const Deadline deadline = Deadline::after(patience);
  const Deadline quiet_by = Deadline::after(patience / 2);
  leaver.roster.leave();
  Status status;
  while (status.ok() && leaver.site.try_begin(false) && !leaver.site.quiet() &&
         !quiet_by.expired() && !leaver.cut()) {
    status = pass_on(leaver, quiet_by);
  }
  while (status.ok() && !deadline.expired() && !leaver.cut()) {
    if (leaver.site.hand_over()) {
      leaver.roster.keep(leaver.site.heir());
      status = leaver.commit();
    }
    if (status.ok() && !owes(leaver) && leaver.site.delivered()) {
      break;
    }
    status = status.ok() ? leaver.pump(kLeaveSlice) : status;
  }
  if (status.ok()) {
    tell_what_is_lost(leaver);
  }
  return status;
}

}  // namespace sotto
