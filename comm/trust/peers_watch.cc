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
  if (file.ok() && file->pipe()) {
    return;  // what came through it does not change
  }
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

/// The first look takes the file in any case, as it may have changed since the caller read it.
void PeersWatch::look() {
  std::string found;
  std::vector<TrustedPeer> peers;
  std::string trouble;
  try {
    found = read_peers_text(path_);
    if (!first_ && found == seen_) {
      if (peers_->drop_expired(unix_seconds())) {
        report_(fmt::format("{}: a key's end has come; it counts as taken out", path_));
      }
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
                ? fmt::format("{} has changed: its {} lines are in force", path_, peers.size())
                : fmt::format("{} has changed and is not taken; whom it named before stays "
                              "trusted: {}",
                              path_, trouble));
  }
  peers_->set_trouble(std::move(trouble));
  seen_ = std::move(found);
  first_ = false;
}

}  // namespace sotto
