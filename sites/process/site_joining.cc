#include <sotto/sites/process/site_joining.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

/// The site looks this often whether it should stop, and how long it has waited.
constexpr std::chrono::milliseconds kJoinSlice{50};
/// A peer that owes a model gets this much longer than the patience for each of its bytes: 16 KB/s.
constexpr double kSlowestBytesPerS = 16e3;

}  // namespace

Status join_sites(const JoiningSite& joiner) {
  if (joiner.site.try_begin(false)) {
    return {};
  }
  if (Status status = joiner.writer.save_new_incarnation(); !status.ok()) {
    return status;
  }
  joiner.reporter.enter(SitePhase::joining);
  joiner.reporter.tell(
      SiteEvent::Level::info, SiteEvent::Kind::joining,
      fmt::format("waits for peers, or for one's model, for {} s at most",
                  joiner.options.found_after.count() / 1000),
      {{"found_after_s", static_cast<double>(joiner.options.found_after.count()) / 1000}});
  const auto begin = Clock::now();
  const auto owed = std::chrono::duration_cast<Clock::duration>(
      joiner.options.patience +
      std::chrono::duration<double>(static_cast<double>(joiner.site.max_message_bytes()) /
                                    kSlowestBytesPerS));
  auto asked = begin;
  while (!joiner.site.try_begin(Clock::now() - begin >= joiner.options.found_after)) {
    if (Status status = joiner.writer.save_new_incarnation(); !status.ok()) {
      return status;
    }
    if (Status status = joiner.pump(kJoinSlice); !status.ok() || joiner.stopped()) {
      return status;
    }
    const auto debtors = joiner.site.awaited();
    if (debtors.empty()) {
      asked = Clock::now();
    } else if (Clock::now() - asked > owed) {
      for (const std::size_t peer : debtors) {
        joiner.links.give_up_on(peer, "it has promised its model and does not deliver it");
      }
      asked = Clock::now();
    }
  }
  const bool alone = std::ranges::none_of(joiner.site.peers(), &sites::PeerState::up);
  joiner.reporter.tell(
      alone ? SiteEvent::Level::warning : SiteEvent::Level::info, SiteEvent::Kind::joined,
      words_of_beginning(joiner.site.state(), alone, std::exchange(joiner.disowned, false)),
      {{"said_by", static_cast<std::uint64_t>(joiner.site.state().round_said_by)}});
  return {};
}

}  // namespace sotto
