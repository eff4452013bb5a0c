// Follows the file of peers while a program runs.
//
// It reads the file five times a second, and puts its peers in force when it says something else
// than before: whole, as times and sizes do not show every change. A file that is wrong is
// reported, and the peers before stay in force until it is right. Keys whose end has come are taken
// out of the peers in force, which is reported too.
//
// Thread safety: it has a thread of its own; any thread may end it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sotto/comm/trust/allow_list.h>
#include <sotto/comm/trust/peers_file.h>

namespace sotto {

class PeersWatch {
 public:
  /// Called from a thread of the watch, with a line for the operator.
  using Report = std::function<void(const std::string&)>;
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

  const std::string path_;
  const std::shared_ptr<AllowList> peers_;
  const Report report_;
  const PeerNumbers numbers_;
  const Judge judge_;
  std::string seen_;  ///< text that the last look found
  bool first_ = true;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sotto
