#include <sotto/sites/process/site_leaving.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace sotto {
namespace {

constexpr std::chrono::milliseconds kLeaveSlice{20};

/// Takes in what comes, for so long at most.
Status pump(const LeavingSite& leaver, Deadline::Clock::duration longest) {
  Status status = leaver.connections.pump(Deadline::after(longest));
  leaver.reporter.refresh(false);
  return status;
}

/// Pumps at least once, and until `done`, or the deadline.
template <typename Done>
Status pump_until(const LeavingSite& leaver, Deadline deadline, const Done& done) {
  Status status = pump(leaver, {});
  while (status.ok() && !done() && !deadline.expired() && !leaver.cut()) {
    status = pump(leaver, std::min<Deadline::Clock::duration>(kLeaveSlice, deadline.left()));
  }
  return status;
}

/// A round without a step, which takes in what is under way to this site.
Status pass_on(const LeavingSite& leaver, Deadline deadline) {
  sites::Site& site = leaver.parts.site;
  if (Status status = site.offer(); !status.ok()) {
    return status;
  }
  if (Status status = leaver.connections.send(leaver.writer); !status.ok()) {
    return status;
  }
  if (Status status = pump_until(leaver, deadline, [&] { return site.complete(); }); !status.ok()) {
    return status;
  }
  return site.collect();
}

/// Whether the site still holds what another node could take: with push-sum all goes to an heir.
bool owes(const LeavingSite& leaver) {
  const sites::Site& site = leaver.parts.site;
  return leaver.parts.options.exchange == sites::MixingKind::push_sum && !site.has_left() &&
         site.state().mass > 0 && leaver.connections.roster()->others_up() > 0;
}

void tell_what_is_lost(const LeavingSite& leaver) {
  const sites::SiteState state = leaver.parts.site.state();
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
  sites::Site& site = leaver.parts.site;
  RunRoster& roster = *leaver.connections.roster();
  const auto patience = roster.leave_patience();
  const Deadline deadline = Deadline::after(patience);
  const Deadline quiet_by = Deadline::after(patience / 2);
  roster.leave();
  Status status;
  while (status.ok() && site.try_begin(false) && !site.quiet() && !quiet_by.expired() &&
         !leaver.cut()) {
    status = pass_on(leaver, quiet_by);
  }
  while (status.ok() && !deadline.expired() && !leaver.cut()) {
    if (site.hand_over()) {
      roster.keep(site.heir());
      status = leaver.connections.send(leaver.writer);
    }
    if (status.ok() && !owes(leaver) && site.delivered()) {
      break;
    }
    status = status.ok() ? pump(leaver, kLeaveSlice) : status;
  }
  if (status.ok()) {
    tell_what_is_lost(leaver);
  }
  return status;
}

}  // namespace sotto
