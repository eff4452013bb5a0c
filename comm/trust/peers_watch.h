// Follows the file of peers while a program runs.
//
// It reads the file five times a second, and puts its peers in force when it says something else
// than before: whole, as times and sizes do not show every change. A file that is wrong is
// reported, and the peers before stay in force until it is right. Keys whose end has come are taken
// out of the peers in force, whatever has become of the file; that is reported, and two weeks
// before that it will be so.
//
// Thread safety: it has a thread of its own; any thread may end it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sotto/comm/trust/allow_list.h>
#include <sotto/comm/trust/peers_file.h>

namespace sotto {

/// What a watch of the list of peers tells.
struct PeersNews {
  /// What has happened.
  enum class Kind {
    changed,     ///< other peers, or fewer keys, are in force
    refused,     ///< the file is not taken, and the peers before stay in force
    key_ending,  ///< a key of a peer holds for two weeks at most
  };
  Kind kind = Kind::changed;
  std::string text{};  ///< a line for the operator
  std::string peer{};  ///< the peer whose key it is; empty: none
};

class PeersWatch {
 public:
  /// Called from a thread of the watch.
  using Report = std::function<void(const PeersNews&)>;
  /// Throws Error for peers that shall not be put in force.
  using Judge = std::function<void(const std::vector<TrustedPeer>&)>;

  /// Lists by name are not taken where they call a key otherwise than before: a site goes by its
  /// name.
  PeersWatch(std::string path, std::shared_ptr<AllowList> peers, Report report,
             PeerNumbers numbers = PeerNumbers::ranks, Judge judge = {});
  ~PeersWatch();
  PeersWatch(const PeersWatch&) = delete;
  PeersWatch& operator=(const PeersWatch&) = delete;

 private:
  void watch();
  void look();
  /// Takes keys out whose end has come, and tells of those that end soon.
  void heed_ends(std::int64_t now);

  const std::string path_;
  const std::shared_ptr<AllowList> peers_;
  const Report report_;
  const PeerNumbers numbers_;
  const Judge judge_;
  bool pipe_ = false;              ///< the list came through a pipe, and does not change
  std::string seen_;               ///< text that the last look found
  std::vector<PeerKey> warned_{};  ///< keys of which it was told that they end
  bool first_ = true;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sotto
