#include <sotto/sites/process/site_joining.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include <sotto/sites/process/longest_transfer.h>
#include <sotto/sites/process/owed_models.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;

/// The site looks this often whether it should stop, and how long it has waited.
constexpr std::chrono::milliseconds kJoinSlice{50};

/// The peers that owe the site their model.
std::vector<OwedModel> owing(const JoiningSite& joiner) {
  const std::vector<std::size_t> places = joiner.parts.site.awaited();
  if (places.empty()) {
    return {};
  }
  const SiteLinks& links = joiner.connections.links();
  const std::vector<ChannelTraffic> traffic = links.traffic();
  std::vector<OwedModel> found;
  found.reserve(places.size());
  for (const std::size_t place : places) {
    const Rank rank = links.link(place).rank;
    const auto at = std::ranges::find(traffic, rank, &ChannelTraffic::peer);
    found.push_back({.peer = rank, .bytes = at == traffic.end() ? 0 : at->bytes_arrived});
  }
  return found;
}

/// Gives up the peers whose models do not come on.
void give_up_overdue(const JoiningSite& joiner, OwedModels& owed) {
  SiteLinks& links = joiner.connections.links();
  for (const Rank rank : owed.overdue(owing(joiner), Clock::now())) {
    if (const auto place = links.place_of(rank)) {
      links.give_up_on(*place, "it has promised its model and does not deliver it");
    }
  }
}

}  // namespace

Status join_sites(const JoiningSite& joiner) {
  sites::Site& site = joiner.parts.site;
  const SiteOptions& options = joiner.parts.options;
  if (site.try_begin(false)) {
    return {};
  }
  if (Status status = joiner.writer.save_new_incarnation(); !status.ok()) {
    return status;
  }
  joiner.reporter.enter(SitePhase::joining);
  joiner.reporter.tell(
      SiteEvent::Level::info, SiteEvent::Kind::joining,
      fmt::format("waits for peers, or for one's model, for {} s at most",
                  options.found_after.count() / 1000),
      {{"found_after_s", static_cast<double>(options.found_after.count()) / 1000}});
  const auto begin = Clock::now();
  OwedModels owed(options.patience,
                  std::chrono::duration_cast<Clock::duration>(
                      options.patience +
                      std::chrono::duration<double>(longest_transfer_s(site.max_message_bytes()))));
  while (!site.try_begin(Clock::now() - begin >= options.found_after)) {
    if (Status status = joiner.writer.save_new_incarnation(); !status.ok()) {
      return status;
    }
    Status status = joiner.connections.pump(Deadline::after(kJoinSlice));
    joiner.reporter.refresh(false);
    if (!status.ok() || joiner.stopped()) {
      return status;
    }
    give_up_overdue(joiner, owed);
  }
  const bool alone = std::ranges::none_of(site.peers(), &sites::PeerState::up);
  joiner.reporter.tell(alone ? SiteEvent::Level::warning : SiteEvent::Level::info,
                       SiteEvent::Kind::joined,
                       words_of_beginning(site.state(), alone, joiner.disowned),
                       {{"said_by", static_cast<std::uint64_t>(site.state().round_said_by)}});
  return {};
}

}  // namespace sotto
