// All channels of a site: one listener, one thread that does all that sockets need, and what that
// thread and the site's share, under one lock.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/byte_pool.h>
#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/trust/peers_file.h>

#include "../../internal/address/address.h"
#include "../../internal/address/host_port.h"
#include "../../internal/backends.h"
#include "../../internal/wakeup.h"
#include "../socket/admission_probe.h"
#include "../socket/authenticator.h"
#include "../socket/socket.h"
#include "channel.h"
#include "stranger_room.h"

namespace sotto::internal {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

/// How soon a change of the list of peers is noticed, and what was put off is done.
constexpr std::chrono::milliseconds kLook = 100ms;
/// Looks in a timeout.
constexpr int kLooks = 8;
/// The longest time in which a connection may prove its owner.
constexpr auto kGreetingTime = 5s;
/// Messages that are taken before others have their turn.
constexpr int kMessagesAtOnce = 64;
/// Peers that have left the list whose counts are kept.
constexpr std::size_t kMostIdle = 64;
/// Looks at a connection that does not take what is to go out, and cannot be polled.
constexpr std::chrono::milliseconds kBlocked = 5ms;

/// A context with room for two sockets and their monitors' for every peer that a list may name.
zmq::context_t make_context() {
  zmq::context_t context = new_context(2 * kDescriptorsOfSocket);  // more come with the peers
  context.set(zmq::ctxopt::max_sockets, static_cast<int>(3 * (kMostPeers + kLeastStrangers)));
  return context;
}

class ZmqChannels final : public Channels {
 public:
  ZmqChannels(const ChannelOptions& options, const std::vector<std::string>& endpoints);
  ~ZmqChannels() override;
  ZmqChannels(const ZmqChannels&) = delete;
  ZmqChannels& operator=(const ZmqChannels&) = delete;

  /// Checks that the socket lets in only listed keys, and begins.
  Status start();

  std::string address() const override;
  Status send(Rank peer, std::span<const std::byte> message) override {
    return hand_over(peer, {.head = {message.begin(), message.end()}, .body = {}});
  }
  Status hand_over(Rank peer, ChannelMessage message) override;
  SharedBytes keep(std::vector<std::byte> message) const override {
    return pool_.share(std::move(message));
  }
  Result<ChannelEvent> poll(Deadline deadline) override;
  void close(Rank peer, std::chrono::milliseconds pause) override;
  std::vector<ChannelTraffic> traffic() const override;
  RefusedKeys refused_keys() const override { return refusals_.all(); }
  Strangers strangers() const override;

 private:
  // The thread.
  void run();
  void live();
  void leave();
  void progress();
  void tick();
  bool take_message();
  void keep_order();
  std::chrono::milliseconds longest_wait() const;
  void notice_ends();
  void cut_idle();
  void wait(std::unique_lock<std::mutex>& lock);
  Channel* channel_of(std::string_view key);

  void heed_list();
  void drop_idle();

  const ChannelOptions options_;
  zmq::context_t context_ = make_context();
  Refusals refusals_;
  const Authenticator authenticator_;
  Listener listener_;
  Wakeup wakeup_;
  BytePool pool_;  ///< of messages that come

  mutable std::mutex mutex_;  ///< guards all that follows
  std::condition_variable news_;
  ChannelEvents events_;
  std::map<Rank, Channel> channels_;
  ChannelTraffic dropped_;             ///< of all channels that were dropped, under no rank
  std::uint64_t dropped_sources_ = 0;  ///< changes of their sources, by which the sum still grows
  std::uint64_t list_version_ = ~std::uint64_t{0};
  /// The thread's own time, which stands still while it does not work.
  Clock::time_point now_ = Clock::now();
  Clock::time_point looked_ = now_;    ///< time when the thread last advanced now_
  std::uint64_t sources_version_ = 0;  ///< version of the peers' sources that the listener knows
  Strangers strangers_;
  Status failure_;
  bool stopping_ = false;
  std::vector<zmq::pollitem_t> poll_items_;  ///< sockets that the thread polls

  std::thread thread_;
};

ZmqChannels::ZmqChannels(const ChannelOptions& options, const std::vector<std::string>& endpoints)
    : options_(options),
      authenticator_(context_, admit_listed(options.security, &refusals_)),
      listener_(context_, endpoints, listener_limits(options.security.peers->peers().size()),
                &options_.security.own) {
  if (!endpoints.empty()) {
    strangers_.room = listener_.limiter()->limits().strangers;
    strangers_.shortages = shortages_of_host();
  }
}

std::string ZmqChannels::address() const {
  std::string all;
  for (const std::string& endpoint : listener_.endpoints()) {
    all += fmt::format("{}{}", all.empty() ? "" : " ", endpoint.substr(6));  // tcp://
  }
  return all;
}

Strangers ZmqChannels::strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_;
}

Status ZmqChannels::start() {
  listener_.admit_own_host();
  for (const std::string& endpoint : listener_.endpoints()) {
    if (auto holds = probe_admission(endpoint, options_.security.own); !holds) {
      return holds;
    }
  }
  refusals_.forget();  // keys of the test
  heed_list();
  thread_ = start_thread("channels", [this] { run(); });
  return {};
}

ZmqChannels::~ZmqChannels() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wakeup_.signal();
    thread_.join();
  }
}

Status ZmqChannels::hand_over(Rank peer, ChannelMessage message) {
  const std::lock_guard lock(mutex_);
  heed_list();
  const auto channel = channels_.find(peer);
  if (channel == channels_.end()) {
    return {Fault::peer_lost, fmt::format("rank {} is not listed", peer)};
  }
  Status sent = channel->second.send(std::move(message));
  if (sent) {
    wakeup_.signal();
  }
  return sent;
}

Result<ChannelEvent> ZmqChannels::poll(Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    heed_list();  // between a message's arrival and its delivery
    if (auto event = events_.take()) {
      if (event->kind == ChannelEvent::Kind::message) {
        channels_.at(event->peer).delivered(event->message.size());
        wakeup_.signal();  // there is room again
      }
      return std::move(*event);
    }
    if (!failure_.ok()) {
      return failure_;
    }
    if (deadline.expired()) {
      return Status(Fault::deadline, "nothing happened on any channel");
    }
    news_.wait_until(lock, deadline.at());
  }
}

void ZmqChannels::close(Rank peer, std::chrono::milliseconds pause) {
  const std::lock_guard lock(mutex_);
  if (const auto channel = channels_.find(peer); channel != channels_.end()) {
    channel->second.close(now_, pause);
    wakeup_.signal();
  }
}

std::vector<ChannelTraffic> ZmqChannels::traffic() const {
  const std::lock_guard lock(mutex_);
  std::vector<ChannelTraffic> traffic;
  for (const auto& [rank, channel] : channels_) {
    traffic.push_back(channel.traffic());
  }
  if (dropped_.bytes_sent > 0) {
    traffic.push_back(dropped_);
  }
  return traffic;
}

/// Drops channels whose peers have left the list, but a few: in a run whose nodes come and go their
/// numbers do not come again.
void ZmqChannels::drop_idle() {
  std::vector<Rank> idle;
  for (const auto& [rank, channel] : channels_) {
    if (channel.idle()) {
      idle.push_back(rank);
    }
  }
  for (std::size_t k = 0; k + kMostIdle < idle.size(); ++k) {  // those of the oldest numbers
    const Channel& channel = channels_.at(idle[k]);
    dropped_.bytes_sent += channel.traffic().bytes_sent;
    dropped_sources_ += channel.sources_version() + 1;
    channels_.erase(idle[k]);
    events_.drop(idle[k]);
  }
}

/// Says to every channel what the list of peers says, as soon as it has changed.
void ZmqChannels::heed_list() {
  const AllowList& list = *options_.security.peers;
  if (list.version() == list_version_) {
    return;
  }
  list_version_ = list.version();
  refusals_.forget_keys();
  const ChannelContext home{options_, context_, listener_, events_, pool_};
  for (const TrustedPeer& line : list.peers()) {
    if (line.rank != options_.rank) {
      channels_.try_emplace(line.rank, home, line.rank);
    }
  }
  for (auto& [rank, channel] : channels_) {
    channel.follow_line(list.find(rank));
  }
  wakeup_.signal();
}

void ZmqChannels::run() {
  try {
    live();
    leave();
  } catch (const zmq::error_t& error) {
    const std::lock_guard lock(mutex_);
    failure_ = {Fault::io, fmt::format("zmq at {}: {}", listener_.endpoint(), error.what())};
    news_.notify_all();
  }
}

void ZmqChannels::live() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    progress();
    wait(lock);
  }
}

/// Brings out what is queued, and says goodbye.
void ZmqChannels::leave() {
  const auto deadline = Deadline::after(options_.close_timeout);
  std::unique_lock lock(mutex_);
  for (auto& [rank, channel] : channels_) {
    channel.leave();
  }
  const auto done = [&] {
    return std::all_of(channels_.begin(), channels_.end(),
                       [](const auto& entry) { return entry.second.left(); });
  };
  for (progress(); !done() && !deadline.expired(); progress()) {
    wait(lock);
  }
  listener_.linger(deadline.left_ms());
  for (auto& [rank, channel] : channels_) {
    channel.abandon(deadline.left_ms());
  }
}

/// Everything that can be done without waiting.
void ZmqChannels::progress() {
  wakeup_.clear();
  tick();
  heed_list();
  // What is received from here on has all that came on connections whose end is known.
  notice_ends();
  for (auto& [rank, channel] : channels_) {
    channel.notice_end(now_);
  }
  bool drained = false;
  for (int i = 0; i < kMessagesAtOnce && !drained; ++i) {
    drained = !take_message();
  }
  keep_order();
  for (auto& [rank, channel] : channels_) {
    drained = channel.handle_replies(now_) && drained;
  }
  if (drained) {
    cut_idle();
  }
  for (auto& [rank, channel] : channels_) {
    channel.work(now_, drained);
  }
  drop_idle();
  if (!events_.empty()) {
    news_.notify_all();
  }
}

/// Time goes on while the thread looks; while the process stood still, so did its peers' time.
void ZmqChannels::tick() {
  const auto now = Clock::now();
  now_ += std::min<Clock::duration>(now - looked_, 2 * options_.timeout / kLooks);
  looked_ = now;
}

Channel* ZmqChannels::channel_of(std::string_view key) {
  const auto found = std::find_if(channels_.begin(), channels_.end(), [&](const auto& entry) {
    return !key.empty() && entry.second.has_key(key);
  });
  return found == channels_.end() ? nullptr : &found->second;
}

bool ZmqChannels::take_message() {
  const auto incoming = listener_.receive();
  heed_list();  // between a message's arrival and its use
  if (!incoming) {
    return false;
  }
  notice_ends();  // connection numbers are reused: what is known of older ones is settled first
  if (Channel* channel = channel_of(incoming->key)) {
    channel->handle(*incoming, now_);
  } else {
    listener_.cut(incoming->connection);
  }
  return true;
}

void ZmqChannels::notice_ends() {
  for (const int connection : listener_.ended()) {
    for (auto& [rank, channel] : channels_) {
      if (channel.uses(connection)) {
        channel.ended(connection, now_);
      }
    }
  }
}

/// Ends connections without a greeting, which take the room of others.
void ZmqChannels::cut_idle() {
  for (const int connection : listener_.older_than(Clock::now() - kGreetingTime)) {
    if (std::none_of(channels_.begin(), channels_.end(),
                     [&](const auto& entry) { return entry.second.uses(connection); })) {
      listener_.cut(connection);
    }
  }
}

/// Shares the room for connections out, among strangers and where peers are.
void ZmqChannels::keep_order() {
  std::uint64_t version = dropped_sources_;
  for (const auto& [rank, channel] : channels_) {
    version += channel.sources_version();
  }
  if (version != sources_version_) {
    sources_version_ = version;
    std::set<Source> sources;
    for (const auto& [rank, channel] : channels_) {
      sources.merge(channel.sources());
    }
    listener_.expect(std::move(sources));
  }
  listener_.keep_order();
  strangers_.waiting = listener_.limiter()->waiting();
  strangers_.cut = listener_.limiter()->cut();
  strangers_.left = listener_.limiter()->left();
}

std::chrono::milliseconds ZmqChannels::longest_wait() const {
  auto most = std::min(kLook, options_.timeout / kLooks);
  const bool blocked = std::ranges::any_of(channels_, [this](const auto& entry) {
    return entry.second.answering() && entry.second.pending(now_);
  });
  if (blocked) {
    most = std::min(most, kBlocked);
  }
  if (listener_.ending() ||
      std::ranges::any_of(channels_, [](const auto& entry) { return entry.second.ending(); })) {
    most = std::min(most, kEndLook);
  }
  if (const auto order = listener_.next_order()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*order - Clock::now());
    most = std::clamp(left, std::chrono::milliseconds(0), most);
  }
  return most;
}

void ZmqChannels::wait(std::unique_lock<std::mutex>& lock) {
  poll_items_.clear();
  poll_items_.push_back({nullptr, wakeup_.descriptor(), ZMQ_POLLIN, 0});
  poll_items_.push_back({listener_.socket().handle(), 0, ZMQ_POLLIN, 0});
  poll_items_.push_back({listener_.monitor().handle(), 0, ZMQ_POLLIN, 0});
  for (auto& [rank, channel] : channels_) {
    if (PeerConnection* connection = channel.connection()) {
      const bool out = !channel.answering() && channel.pending(now_);
      const auto events = static_cast<short>(out ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN);
      poll_items_.push_back({connection->monitor()->handle(), 0, ZMQ_POLLIN, 0});
      poll_items_.push_back({connection->socket().handle(), 0, events, 0});
    }
  }
  const auto most = longest_wait();
  lock.unlock();
  // An interrupted wait is as good as one that ended: the caller looks again.
  (void)zmq_poll(poll_items_.data(), static_cast<int>(poll_items_.size()), most.count());
  lock.lock();
}

}  // namespace

Result<std::unique_ptr<Channels>> make_zmq_channels(const ChannelOptions& options) {
  const auto own = options.security.peers->find(options.rank);
  const auto text = !options.bind.empty() ? options.bind : own ? own->address : std::string();
  std::vector<std::string> endpoints;
  for (const std::string& one : split_addresses(text)) {
    const auto place = parse_host_port(one);
    if (!place) {
      refuse(options.bind.empty() ? "address" : "bind", one, "where to listen is HOST:PORT");
    }
    const auto address =
        resolve_bind_address("bind", place->host, {.beyond_loopback = true, .everywhere = true});
    endpoints.push_back(address.endpoint(fmt::to_string(place->port)));
  }
  try {
    auto channels = std::make_unique<ZmqChannels>(options, endpoints);
    if (auto started = channels->start(); !started) {
      return started;
    }
    return Result<std::unique_ptr<Channels>>(std::move(channels));
  } catch (const zmq::error_t& error) {
    return Status(Fault::io, fmt::format("listening at {}: {}", text, error.what()));
  } catch (const Shortage& shortage) {
    return Status(Fault::io, shortage.what());
  }
}

}  // namespace sotto::internal
