#include <sotto/sites/process/site_connections.h>

#include <chrono>
#include <utility>

#include <sotto/sites/nodes/incarnation.h>
#include <sotto/sites/process/site_of_options.h>
#include <sotto/sites/process/trust/site_identity.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;

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

Status SiteConnections::find_nodes() {
  const SiteOptions& options = parts_.options;
  if (!options.roster) {
    return {};
  }
  reporter_.enter(SitePhase::joining);
  if (!roster_) {  // a call before this one may have been told to stop
    roster_ = std::make_unique<RunRoster>(*options.roster, options.name, options.listen,
                                          draw_incarnation(), parts_.site.state().life,
                                          options.security.peers, parts_.settings);
  }
  reporter_.follow(nullptr, nullptr, roster_.get());
  return roster_->await_nodes(options.stop, options.found_after, [this] {
    tell_news();
    reporter_.refresh(false);
  });
}

Status SiteConnections::open() {
  const SiteOptions& options = parts_.options;
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
                                       options.rank, options.exchange, listener_);
  monitor_ = std::make_unique<PeerMonitor>(parts_.site, *channels_, *links_, options.only_takes,
                                           parts_.settings, listener_);
  reporter_.follow(channels_.get(), monitor_.get(), roster_.get());
  const std::string address = channels_->address();
  reporter_.tell(Level::info, SiteEvent::Kind::listening,
                 address.empty()
                     ? "nowhere: neither `listen` nor the own line names an address; it dials"
                     : address);
  for (const std::string& shortage : channels_->strangers().shortages) {
    reporter_.tell(Level::warning, SiteEvent::Kind::setting, shortage);
  }
  follow_list();
  if (roster_) {
    roster_->list_again();  // the site learns whom the list has by now
    return pump(Deadline::after({}));
  }
  return {};
}

void SiteConnections::close() {
  reporter_.follow(nullptr, nullptr, nullptr);
  monitor_.reset();
  links_.reset();
  channels_.reset();
  roster_.reset();
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
    listener_({Level::warning, kind_of(one.kind), std::move(one.text), std::move(one.peer),
               parts_.site.round()});
  }
  for (SiteEvent& event : roster_ ? roster_->news() : std::vector<SiteEvent>()) {
    event.round = parts_.site.round();
    listener_(event);
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
  return status;
}

}  // namespace sotto
