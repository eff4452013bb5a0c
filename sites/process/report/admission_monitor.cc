#include <sotto/sites/process/report/admission_monitor.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sotto {

AdmissionMonitor::AdmissionMonitor(const Channels& channels, SiteTeller teller)
    : channels_(channels), teller_(std::move(teller)) {}

void AdmissionMonitor::follow(const std::vector<TrustedPeer>& lines) {
  keys_told_.clear();
  listed_.clear();
  for (const TrustedPeer& line : lines) {
    for (const PeerKey& one : line.keys()) {
      listed_.insert(one.key.text());
      if (names_.size() < kMostKeys) {
        names_[one.key.text()] = line.name;
      }
    }
  }
}

void AdmissionMonitor::look() {
  look_at_keys();
  look_at_crowd();
}

/// A crowd is told of when it begins, and again when it has not ended for a while.
void AdmissionMonitor::look_at_crowd() {
  const Strangers strangers = channels_.strangers();
  const bool many = strangers.left >= left_told_ + kManyLeft;
  if ((strangers.cut == cut_told_ && !many) || !crowd_due_.expired()) {
    return;
  }
  teller_.warn(SiteEvent::Kind::door_crowded,
               fmt::format("{} connections that had not proved a key were ended to make room "
                           "for others, and {} ended without a proof; {} are there, of {} at "
                           "most",
                           strangers.cut - cut_told_, strangers.left - left_told_,
                           strangers.waiting, strangers.room));
  cut_told_ = strangers.cut;
  left_told_ = strangers.left;
  crowd_due_ = Deadline::after(kLongestSilence);
}

void AdmissionMonitor::look_at_keys() {
  if (!keys_due_.expired()) {
    return;
  }
  bool told = false;
  for (const SiteRefusedKey& key : refused_keys()) {
    if (keys_told_.size() == kMostKeys) {
      keys_told_.clear();
    }
    if (!keys_told_.insert(key.refused.key).second) {
      continue;
    }
    told = true;
    teller_.warn(
        SiteEvent::Kind::key_refused,
        fmt::format("not let in from {}: the key {} {}", key.refused.address, key.refused.key,
                    key.name.empty() ? "is not in the list of peers"
                    : key.listed     ? "has a line in the list of peers that allows it nothing"
                                     : "was in the list of peers, and is not any more"),
        key.name);
  }
  if (told) {
    keys_due_ = Deadline::after(key_pause_);
    key_pause_ = std::min(2 * key_pause_, kLongestSilence);
  }
}

std::vector<SiteRefusedKey> AdmissionMonitor::refused_keys() const {
  std::vector<SiteRefusedKey> found;
  for (RefusedKey& refused : channels_.refused_keys().latest) {
    const auto name = names_.find(refused.key);
    const bool listed = listed_.contains(refused.key);
    found.push_back({.refused = std::move(refused),
                     .name = name == names_.end() ? "" : name->second,
                     .listed = listed});
  }
  return found;
}

}  // namespace sotto
