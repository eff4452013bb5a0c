#include <sotto/comm/trust/peers_watch.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/start_threads.h>
#include <sotto/base/unix_time.h>

namespace sotto {
namespace {

constexpr std::chrono::milliseconds kPeriod{200};
/// A key's end is told of so long before.
constexpr std::chrono::seconds kWarnBefore = std::chrono::hours(14 * 24);
constexpr double kSecondsADay = 24 * 60 * 60;

void check_names_stay(const std::string& path, const std::vector<TrustedPeer>& before,
                      const std::vector<TrustedPeer>& now) {
  for (const TrustedPeer& peer : now) {
    const auto same = std::ranges::find_if(before, [&](const TrustedPeer& other) {
      return std::ranges::any_of(peer.keys(),
                                 [&](const PeerKey& one) { return other.holds(one.key); });
    });
    if (same != before.end() && same->name != peer.name) {
      throw Error(
          fmt::format("{}: the key of '{}' is called '{}' now; states and streams go by the name, "
                      "which a site keeps as long as it runs",
                      path, same->name, peer.name));
    }
  }
}

}  // namespace

PeersWatch::PeersWatch(std::string path, std::shared_ptr<AllowList> peers, Report report,
                       PeerNumbers numbers, Judge judge)
    : path_(std::move(path)),
      peers_(std::move(peers)),
      report_(std::move(report)),
      numbers_(numbers),
      judge_(std::move(judge)) {
  const auto file = InputFile::open(path_);
  pipe_ = file.ok() && file->pipe();
  thread_ = start_thread("the list of peers", [this] { watch(); });
}

PeersWatch::~PeersWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void PeersWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    look();
    lock.lock();
    stop_.wait_for(lock, kPeriod, [this] { return stopping_; });
  }
}

void PeersWatch::heed_ends(std::int64_t now) {
  const auto seconds_left = [now](const PeerKey& one) { return one.until.value_or(0) - now; };
  std::vector<PeersNews> news;
  for (const TrustedPeer& peer : peers_->peers()) {
    const auto keys = peer.keys();
    for (const PeerKey& one : keys) {
      if (!one.until || seconds_left(one) > kWarnBefore.count()) {
        continue;
      }
      const bool ended = seconds_left(one) <= 0;
      if (!ended && std::ranges::find(warned_, one) != warned_.end()) {
        continue;
      }
      const bool last = std::ranges::none_of(
          keys, [&](const PeerKey& other) { return !other.until || *other.until > *one.until; });
      const std::string after = last ? "it has no other key" : "it has another key";
      if (!ended) {
        warned_.push_back(one);
      }
      news.push_back(
          {.kind = ended ? PeersNews::Kind::changed : PeersNews::Kind::key_ending,
           .text = ended
                       ? fmt::format("{}: the end of key {} of '{}' has come; it counts as taken "
                                     "out, and {}",
                                     path_, one.key.text(), peer.name, after)
                       : fmt::format("{}: key {} of '{}' ends in {:.1f} days; {}", path_,
                                     one.key.text(), peer.name,
                                     static_cast<double>(seconds_left(one)) / kSecondsADay, after),
           .peer = peer.name});
    }
  }
  (void)peers_->drop_expired(now);
  std::ranges::for_each(news, report_);
}

/// The first look takes the file in any case, as it may have changed since the caller read it.
void PeersWatch::look() {
  heed_ends(unix_seconds());
  if (pipe_) {
    return;
  }
  std::string found;
  std::vector<TrustedPeer> peers;
  std::string trouble;
  try {
    found = read_peers_text(path_);
    if (!first_ && found == seen_) {
      return;
    }
    peers = parse_peers_file(path_, found, numbers_);
    drop_expired(peers, unix_seconds());
    if (numbers_ == PeerNumbers::of_names) {
      check_names_stay(path_, peers_->peers(), peers);
    }
    if (judge_) {
      judge_(peers);
    }
    peers_->update_allow_list(peers);
  } catch (const Error& error) {
    trouble = error.what();
    found = found.empty() ? trouble : found;
  }
  if (trouble.empty() ? !first_ : found != seen_) {
    report_(trouble.empty()
                ? PeersNews{.text = fmt::format("{} has changed: its {} lines are in force", path_,
                                                peers.size())}
                : PeersNews{.kind = PeersNews::Kind::refused,
                            .text = fmt::format("{} has changed and is not taken; whom it named "
                                                "before stays trusted: {}",
                                                path_, trouble)});
  }
  peers_->set_trouble(std::move(trouble));
  seen_ = std::move(found);
  first_ = false;
}

}  // namespace sotto
