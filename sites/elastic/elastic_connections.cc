#include <sotto/sites/elastic/elastic_connections.h>

#include <span>
#include <utility>
#include <vector>

#include <sotto/sites/elastic/elastic_assembly.h>
#include <sotto/sites/nodes/state/site_folder.h>

namespace sotto {

ElasticConnections::ElasticConnections(const ElasticOptions& options, std::string settings,
                                       std::size_t dimension, const FoundingVotes& votes,
                                       std::function<sites::EpochTime()> clock,
                                       SiteListener listener)
    : options_(options),
      settings_(std::move(settings)),
      dimension_(dimension),
      votes_(votes),
      clock_(std::move(clock)),
      listener_(std::move(listener)),
      list_(std::make_shared<AllowList>(std::vector<TrustedPeer>{
          {.rank = 0,
           .name = options.name,
           .key = options.roster.key.node_keys(options.name).public_key}})) {}

Status ElasticConnections::open() {
  close();  // what a call that threw has left
  auto roster =
      std::make_unique<RunRoster>(options_.roster, RosterNode{.name = options_.name,
                                                              .listen = options_.listen,
                                                              .incarnation = incarnation_,
                                                              .life = SiteFolder::life_by_clock(),
                                                              .list = list_,
                                                              .settings = settings_,
                                                              .reach = RosterReach::all});
  auto channels = make_channels(channels_for(options_, dimension_, roster->address(), list_));
  if (!channels.ok()) {
    return channels.status();
  }
  roster_ = std::move(roster);
  channels_ = std::move(*channels);
  links_.emplace(ElasticLinks::Parts{
      .name = options_.name,
      .incarnation = incarnation_,
      .channels = *channels_,
      .list = *list_,
      .connect_within = options_.timeout,
      .clock = clock_,
      .keep = [this](std::span<const std::byte> votes) { return votes_.keep(votes); },
      .listener = listener_});
  roster_->list_again();
  return {};
}

void ElasticConnections::close() {
  links_.reset();
  channels_.reset();
  roster_.reset();
}

std::uint64_t ElasticConnections::bytes_sent() const {
  std::uint64_t sum = 0;
  if (is_open()) {
    for (const ChannelTraffic& passed : channels_->traffic()) {
      sum += passed.bytes_sent;
    }
  }
  return sum;
}

std::optional<SiteRosterReport> ElasticConnections::nodes() const {
  return is_open() ? std::optional(roster_->report()) : std::nullopt;
}

}  // namespace sotto
