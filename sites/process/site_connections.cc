#include <sotto/sites/process/site_connections.h>

#include <chrono>
#include <utility>

#include <sotto/sites/nodes/incarnation.h>
#include <sotto/sites/process/site_of_options.h>
#include <sotto/sites/process/trust/site_identity.h>

namespace sotto {
namespace {

SiteEvent::Kind kind_of(PeersNews::Kind kind) {
  switch (kind) {
    case PeersNews::Kind::changed:
      return SiteEvent::Kind::peers_file;
    case PeersNews::Kind::refused:
      return SiteEvent::Kind::peers_refused;
    case PeersNews::Kind::key_ending:
      return SiteEvent::Kind::key_ending;
  }
  return SiteEvent::Kind::peers_file;
}

}  // namespace

Status SiteConnections::find_nodes(const std::function<void()>& meanwhile) {
  const SiteOptions& options = parts_.options;
  if (!roster_) {  // a call before this one may have been told to stop
    roster_ =
        std::make_unique<RunRoster>(*options.roster, RosterNode{.name = options.name,
                                                                .listen = options.listen,
                                                                .incarnation = draw_incarnation(),
                                                                .life = parts_.site.state().life,
                                                                .list = options.security.peers,
                                                                .settings = parts_.settings});
  }
  return roster_->await_nodes(options.stop, options.found_after, [&] {
    tell_news();
    meanwhile();
  });
}

Status SiteConnections::open(bool disowned) {
  const SiteOptions& options = parts_.options;
  resets_ = parts_.site.state().resets + (disowned ? 1 : 0);
  ChannelOptions wanted = site_channels(options, parts_.site.max_message_bytes());
  if (roster_) {
    wanted.bind = roster_->address();
  }
  auto made = make_channels(wanted);
  if (!made.ok()) {
    return made.status();
  }
  channels_ = std::move(*made);
  links_ = std::make_unique<SiteLinks>(parts_.site, *channels_, *options.security.peers,
                                       options.rank, options.exchange, teller_);
  monitor_ = std::make_unique<PeerMonitor>(parts_.site, *channels_, *links_, options.only_takes,
                                           parts_.settings, teller_);
  const std::string address = channels_->address();
  teller_.tell(SiteEvent::Level::info, SiteEvent::Kind::listening,
               address.empty()
                   ? "nowhere: neither `listen` nor the own line names an address; it dials"
                   : address);
  for (const std::string& shortage : channels_->strangers().shortages) {
    teller_.warn(SiteEvent::Kind::setting, shortage);
  }
  follow_list();
  if (roster_) {
    roster_->list_again();  // the site learns whom the list has by now
    return pump(Deadline::after({}));
  }
  return {};
}

void SiteConnections::close() {
  monitor_.reset();
  links_.reset();
  channels_.reset();
  roster_.reset();
}

std::vector<SitePeerReport> SiteConnections::peers() const {
  return is_open() ? monitor_->reports() : std::vector<SitePeerReport>();
}

std::uint64_t SiteConnections::bytes_sent() const {
  std::uint64_t sum = 0;
  if (is_open()) {
    for (const ChannelTraffic& passed : channels_->traffic()) {
      sum += passed.bytes_sent;
    }
  }
  return sum;
}

void SiteConnections::describe(SiteReport& report) const {
  if (roster_) {
    report.roster = roster_->report();
  }
  if (is_open()) {
    report.address = channels_->address();
    report.peers = monitor_->reports();
    report.list_trouble = parts_.options.security.peers->trouble();
    report.refused_keys = monitor_->admission().refused_keys();
    report.keys_refused = channels_->refused_keys().times;
    report.strangers = channels_->strangers();
  }
}

void SiteConnections::follow_list() {
  const SiteOptions& options = parts_.options;
  if (options.peers_file.empty()) {
    return;
  }
  watch_.emplace(
      options.peers_file, options.security.peers,
      [this](const PeersNews& one) {
        const std::lock_guard lock(news_mutex_);  // and no other: a round may wait for long
        list_news_.push_back(one);
      },
      PeerNumbers::of_names,
      [names = SiteNames{.name = options.name,
                         .key = "",
                         .peers = options.peers_file,
                         .listen = options.listen},
       own = options.security.own.public_key](const auto& lines) {
        (void)own_line(names, own, lines);
      });
}

void SiteConnections::tell_news() {
  std::vector<PeersNews> news;
  {
    const std::lock_guard lock(news_mutex_);
    news.swap(list_news_);
  }
  for (PeersNews& one : news) {
    teller_.warn(kind_of(one.kind), std::move(one.text), std::move(one.peer));
  }
  for (SiteEvent& event : roster_ ? roster_->news() : std::vector<SiteEvent>()) {
    teller_.tell(std::move(event));
  }
}

Status SiteConnections::carry(Deadline deadline) {
  Status status = links_->pump(deadline);
  monitor_->look();
  return status;
}

Status SiteConnections::pump(Deadline deadline) {
  tell_news();
  Status status = carry(deadline);
  if (status.ok() && roster_) {
    parts_.site.set_draining(roster_->draining());
    status = roster_->standing();
  }
  tell_of_reset();
  return status;
}

void SiteConnections::tell_of_reset() {
  const std::uint64_t resets = parts_.site.state().resets;
  if (std::exchange(resets_, resets) != resets) {
    teller_.warn(
        SiteEvent::Kind::state_given_up,
        "a peer knows more of this site than its state does: it starts from a neighbour's model");
  }
}

Status SiteConnections::send(SiteStateWriter& writer) {
  if (writer.beside()) {  // no parcel waits for the state, which is copied while parcels travel
    links_->send();
    return writer.keep();
  }
  Status status = writer.keep();
  if (status.ok()) {
    links_->send();
  }
  return status;
}

}  // namespace sotto
