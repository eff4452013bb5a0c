// Tells the operator of a site which keys were not let in, and of crowds of connections that prove
// none.
//
// Thread safety: one thread at a time. The channels are the caller's and must outlive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <sotto/comm/channels.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/allow_list.h>
#include <sotto/sites/nodes/report/site_report.h>
#include <sotto/sites/process/report/site_teller.h>

namespace sotto {

class AdmissionMonitor {
 public:
  /// Watches `channels`, and has `teller` tell of them.
  AdmissionMonitor(const Channels& channels, SiteTeller teller);

  /// Takes a list of peers that has come into force. Keys that were told of are told of again,
  /// since the new list may say otherwise of them.
  void follow(const std::vector<TrustedPeer>& lines);
  /// Tells what is new since the last call.
  void look();
  /// The latest refused keys, and their owners now or before.
  std::vector<SiteRefusedKey> refused_keys() const;

 private:
  /// Anybody can make keys without end: the pause between two lines doubles from the first to the
  /// second of these.
  static constexpr std::chrono::milliseconds kFirstSilence{2'000};
  static constexpr std::chrono::milliseconds kLongestSilence{600'000};
  /// Keys that are remembered as told, or as a peer's of before.
  static constexpr std::size_t kMostKeys = 8192;
  /// Connections that ended without a proof, since that was told, which are a crowd, too.
  static constexpr std::uint64_t kManyLeft = 256;

  void look_at_keys();
  void look_at_crowd();

  const Channels& channels_;
  const SiteTeller teller_;
  std::set<std::string> listed_;              ///< the keys of the list that is in force
  std::map<std::string, std::string> names_;  ///< owners by key, of all lists so far
  std::set<std::string> keys_told_;
  std::chrono::milliseconds key_pause_ = kFirstSilence;
  Deadline keys_due_ = Deadline::after({});
  std::uint64_t cut_told_ = 0;
  std::uint64_t left_told_ = 0;
  Deadline crowd_due_ = Deadline::after({});
};

}  // namespace sotto
