#include <sotto/sites/nodes/run_roster.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <sotto/comm/shared_store.h>

namespace sotto {
namespace {

using namespace std::chrono_literals;
using sites::NodePhase;
using sites::RosterMember;
using sites::RosterStanding;

constexpr auto kLookEvery = 20ms;
constexpr auto kTickEvery = 100ms;
/// Datagrams that are taken in at once, and the time for it: others wait for the roster meanwhile.
constexpr int kMostAtOnce = 256;
constexpr auto kLongestAtOnce = 10ms;
/// Times that a goodbye is sent, as nobody asks for one that is lost; and the time between two.
constexpr int kGoodbyes = 3;
constexpr auto kGoodbyePause = 10ms;

/// Where this node listens. With a store it is where the others reach it, as far as that can be
/// seen: by the route to the store's server, or by the default route.
DatagramPlace place_of(const RosterOptions& options, const std::string& listen) {
  DatagramPlace place{.listen = listen,
                      .seeds = options.seeds,
                      .beyond_loopback = !options.key.is_open() || options.insecure};
  if (by_store(options)) {
    const std::string server = server_of_store(options.seeds.front());
    place.seeds.clear();
    place.towards = server.empty() && place.beyond_loopback ? std::string(kAnywhere) : server;
    place.known_within = options.store_patience;
  }
  return place;
}

/// The store of the seeds; null: they are addresses.
std::unique_ptr<SeedStore> store_of(const RosterOptions& options, sites::SeedLease own) {
  if (!by_store(options)) {
    return nullptr;
  }
  const std::string& url = options.seeds.front();
  return std::make_unique<SeedStore>(
      [url](StopRequest stop) { return make_shared_store("seeds", url, std::move(stop)); },
      options.key, std::move(own),
      SeedStoreOptions{.url = url, .patience = options.store_patience});
}

sites::RosterSetup roster_setup(const RosterOptions& options, const RosterNode& node,
                                const std::string& address) {
  return {.name = node.name,
          .incarnation = node.incarnation,
          .life = node.life,
          .address = address,
          .seeds = by_store(options) ? std::vector<std::string>() : options.seeds,
          .awaits_seeds = by_store(options),
          .least = options.least,
          .most = options.most,
          .settings = fmt::format("nodes={}:{}\n{}", options.least, options.most, node.settings)};
}

}  // namespace

RunRoster::RunRoster(const RosterOptions& options, const RosterNode& node)
    : options_(options),
      name_(node.name),
      list_(node.list),
      datagrams_(place_of(options, node.listen), options.key.derived("sotto datagrams")),
      address_(datagrams_.address()),
      store_(store_of(options,
                      {.name = node.name, .incarnation = node.incarnation, .address = address_})),
      roster_(roster_setup(options, node, address_), now()),
      view_(roster_.view()),
      peers_(node.name, node.reach),
      news_(node.name, options.least),
      service_("a roster", kLookEvery, [this] { work(); }) {
  const auto lock = service_.pause();
  news_.add({{.level = SiteEvent::Level::info,
              .kind = SiteEvent::Kind::joining,
              .text = fmt::format("as {} at {}: looks for other nodes, {} at least", name_,
                                  address_, options_.least)}});
}

void RunRoster::work() {
  bool heard = false;
  const Deadline enough = Deadline::after(kLongestAtOnce);
  for (int taken = 0; taken < kMostAtOnce && !enough.expired(); ++taken) {
    const auto received = datagrams_.receive(Deadline::after({}));
    if (!received) {
      break;
    }
    heard = true;
    // What is malformed changes nothing, and comes from one that has the run's key.
    (void)roster_.receive(received->from, received->message, now());
  }
  const bool due = Clock::now() - ticked_ >= kTickEvery;
  if (!heard && !due) {
    return;
  }
  if (due) {
    ticked_ = Clock::now();
    follow_store();
    note_own_seeds();
    roster_.tick(now());
  }
  send_released();
  view_ = roster_.view();
  follow_view();
  news_.follow(view_);
  news_.add(search_.due(now(), search_state()));
}

void RunRoster::follow_store() {
  if (!store_) {
    return;
  }
  SeedStoreBoard& board = store_->board();
  board.hurry(searches());
  news_.add(board.news());
  if (auto seeds = board.seeds(); seeds && seeds != from_store_) {
    roster_.set_seeds(*seeds, now());
    from_store_ = std::move(seeds);
  }
}

bool RunRoster::searches() const {
  return waits_ || view_.standing == RosterStanding::joining || view_.up < options_.least;
}

void RunRoster::note_own_seeds() {
  for (const std::string& seed : view_.asked) {
    if (datagrams_.is_alone_at(seed)) {
      roster_.note_own_seed(seed, now());
    }
  }
}

void RunRoster::send_released() {
  for (const sites::RosterDatagram& released : roster_.released()) {
    datagrams_.send(released.to, released.message);
  }
}

void RunRoster::follow_view() {
  if (!peers_.follow(view_, now())) {
    return;
  }
  std::vector<TrustedPeer> lines = list_->peers();
  std::erase_if(lines, [](const TrustedPeer& line) { return line.rank != 0; });
  for (const auto& [name, peer] : peers_.peers()) {
    lines.push_back({.rank = peer.rank,
                     .name = name,
                     .key = options_.key.node_keys(name).public_key,
                     .address = peer.address});
  }
  list_->update_allow_list(std::move(lines));
}

RosterSearchState RunRoster::search_state() {
  std::vector<std::string> unknown;
  for (const std::string& seed : view_.silent) {
    if (!datagrams_.knows(seed)) {
      unknown.push_back(seed);
    }
  }
  return {.few = searches(),
          .alone = view_.up <= 1,
          .address = address_,
          .asked = view_.asked,
          .silent = view_.silent,
          .unknown = std::move(unknown),
          .refused = datagrams_.refused(),
          .by_store = store_ != nullptr};
}

Status RunRoster::standing() const {
  const auto lock = service_.pause();
  if (Status status = store_ ? store_->board().standing() : Status(); !status.ok()) {
    return status;
  }
  switch (view_.standing) {
    case RosterStanding::other:
      return {Fault::unexpected, words_of(*view_.other)};
    case RosterStanding::full:
      return {Fault::unexpected,
              fmt::format("the run has {} nodes, as many as it may have: start this one again when "
                          "one has left",
                          options_.most)};
    case RosterStanding::duplicate:
      return {Fault::unexpected,
              fmt::format("another process named {} takes part: give each node a name of its own",
                          name_)};
    default:
      break;
  }
  if (waits_ && view_.other && view_.other->goes_before) {
    return {Fault::unexpected, words_of(*view_.other)};  // two runs would wait beside each other
  }
  return {};
}

bool RunRoster::may_begin(std::chrono::milliseconds alone_after) const {
  const auto lock = service_.pause();
  const bool alone = view_.up == 1 && (options_.seeds.empty() || now() >= alone_after);
  return view_.standing == RosterStanding::up && view_.up >= options_.least &&
         (alone || !peers_.peers().empty());
}

Status RunRoster::await_nodes(const std::atomic<bool>* stop, std::chrono::milliseconds alone_after,
                              const std::function<void()>& meanwhile) {
  set_waiting(true);
  while (!may_begin(alone_after)) {
    if (Status status = standing(); !status.ok()) {
      return status;
    }
    if (stop != nullptr && *stop) {
      return {Fault::stopped, "was told to stop before enough nodes were there"};
    }
    meanwhile();
    std::this_thread::sleep_for(kLookEvery);
  }
  set_waiting(false);
  return {};
}

void RunRoster::set_waiting(bool waits) {
  const auto lock = service_.pause();
  waits_ = waits;
}

SiteRosterReport RunRoster::report() const {
  const auto lock = service_.pause();
  SiteRosterReport report{.least = options_.least, .most = options_.most, .up = view_.up};
  for (const RosterMember& member : view_.members) {
    report.members.push_back({.name = member.entry.name,
                              .address = member.entry.address,
                              .state = std::string(name_of(state_of(member))),
                              .neighbour = member.neighbour});
  }
  return report;
}

sites::RosterView RunRoster::view() const {
  const auto lock = service_.pause();
  return view_;
}

bool RunRoster::has_first_seed() {
  const auto lock = service_.pause();
  return options_.seeds.empty() || (!store_ && datagrams_.is_at(options_.seeds.front()));
}

std::uint64_t RunRoster::refused() const {
  const auto lock = service_.pause();
  return datagrams_.refused();
}

std::vector<sites::DrainingPeer> RunRoster::draining() const {
  const auto lock = service_.pause();
  return peers_.draining(view_);
}

std::size_t RunRoster::others_up() const {
  const auto lock = service_.pause();
  return static_cast<std::size_t>(
      std::ranges::count_if(view_.members, [this](const RosterMember& member) {
        return member.entry.phase == NodePhase::up && !member.suspected &&
               member.entry.name != name_;
      }));
}

void RunRoster::keep(const std::string& peer) {
  const auto lock = service_.pause();
  peers_.keep(peer);
}

std::vector<SiteEvent> RunRoster::news() {
  const auto lock = service_.pause();
  return news_.take();
}

void RunRoster::list_again() {
  const auto lock = service_.pause();
  list_->update_allow_list(list_->peers());
}

void RunRoster::leave() {
  const auto lock = service_.pause();
  if (store_) {
    store_->board().leave();
  }
  roster_.leave(now());
  roster_.tick(now());
  send_released();
}

void RunRoster::note_end() {
  const auto lock = service_.pause();
  run_is_over_ = true;
}

RunRoster::~RunRoster() {
  const auto lock = service_.pause();
  roster_.depart(now(), run_is_over_);
  const std::vector<sites::RosterDatagram> goodbyes = roster_.released();
  for (int sent = 0; sent < kGoodbyes && !goodbyes.empty(); ++sent) {
    std::this_thread::sleep_for(sent > 0 ? kGoodbyePause : 0ms);
    for (const sites::RosterDatagram& goodbye : goodbyes) {
      datagrams_.send(goodbye.to, goodbye.message);
    }
  }
}

}  // namespace sotto
