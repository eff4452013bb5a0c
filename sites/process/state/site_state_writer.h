// Writes the state of a site into its folder: before anything of a round is told, or beside the
// training now and then (SiteOptions::save_every).
//
// One thread at a time; a write beside the training is made by a thread of its own. Memory: a copy
// of the state, once one was written.
#pragma once

#include <functional>
#include <utility>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/sites/nodes/state/state_thread.h>
#include <sotto/sites/process/site_parts.h>

namespace sotto {

class SiteStateWriter {
 public:
  /// Writes to the folder of the parts; nothing where there is none. `meanwhile` is called again
  /// and again while a write is waited for.
  SiteStateWriter(const SiteParts& parts, std::function<void()> meanwhile)
      : parts_(parts), meanwhile_(std::move(meanwhile)) {}

  /// Whether states are written beside the training: what is in the folder need not be the site's
  /// last then.
  bool beside() const { return parts_.folder != nullptr && parts_.options.save_every > 1; }
  /// Writes the state as it is, and waits for that and all writes before. `complete` says that
  /// others know nothing newer of the site.
  Status save(bool complete);
  /// Sees to it that the state, as it is after offer, is written as often as options want.
  Status keep();
  /// Writes a new incarnation before anybody hears of it.
  Status save_new_incarnation();
  /// The state of the site was read from the folder.
  void loaded() { incarnation_ = parts_.site.state().incarnation; }
  /// Seconds for which writes were waited for.
  double seconds() const { return seconds_; }

 private:
  /// Bytes of the site's state as it is now.
  std::size_t bytes_of_state() const;
  /// Copies the site's state to `state_`.
  void take_state(bool complete);
  /// The writes that were begun beside the training are over.
  Status settle();

  const SiteParts& parts_;
  std::function<void()> meanwhile_;
  double seconds_ = 0;
  sites::Incarnation incarnation_ = 0;  ///< incarnation in the latest state
  Round round_ = 0;                     ///< round of the latest state
  SiteStateFile state_;                 ///< what is written
  StateThread thread_;                  ///< last: its job uses all members above
};

}  // namespace sotto
