// What one site keeps between its lives, in a folder that one process holds at a time:
//
//   lock             locked by the process that holds the folder
//   life             the number of its start, which only grows
//   state.a state.b  its state, written in turn, so that the one before stays
//   state.a.damaged  a state that was set aside, as it is damaged
//   privacy          what is spent of its privacy budget (trainers/files/privacy_ledger.h)
//
// A state (site_state_file.h) is written beside, synced and renamed (durable_file.h), and its owner
// alone may read it. After a write that failed there is no other: what the disk then holds is not
// known.
//
// The number of a start is one more than that before, and at least the clock's, in seconds: so a
// folder that is put back from a backup is told from a process that has hung on.
//
// Thread safety: one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/base/status.h>
#include <sotto/sites/nodes/state/site_state_file.h>

namespace sotto {

/// A state that a folder holds.
struct FoundSiteState {
  SiteStateFile state;
  std::string file;     ///< path of the state's file
  std::string warning;  ///< note that a newer state is damaged; empty: all is well
};

/// The newest undamaged state in a folder; no value if the folder has no state. A fault if all its
/// states are damaged. Looks without the folder's lock, and may miss a state that a process is
/// writing.
Result<std::optional<FoundSiteState>> read_site_state(const std::string& folder);

class SiteFolder {
 public:
  /// Makes the folder, mode 0700, if it is absent, locks it and counts the start. Throws Error when
  /// another process holds it, it cannot be used, its life cannot be read, or another user could
  /// change what it holds.
  explicit SiteFolder(std::string path);
  ~SiteFolder();
  SiteFolder(const SiteFolder&) = delete;
  SiteFolder& operator=(const SiteFolder&) = delete;

  /// The number of a start now, of a site without a folder: the clock's, in seconds.
  static std::uint32_t life_by_clock();

  const std::string& path() const { return path_; }
  std::uint32_t life() const { return life_; }
  /// By how many seconds the clock is behind that of an earlier start; 0: it is not, or by no more
  /// than starts in a row explain.
  std::uint32_t clock_behind_s() const { return clock_behind_s_; }
  /// What an operator should look at: its parent, as its administrator made it, lets anybody put
  /// another folder in its place. Empty: nothing.
  std::string doubt() const;
  /// The path of the file that keeps the privacy budget spent.
  std::string privacy_ledger() const;

  /// read_site_state of the folder. Comes before write.
  Result<std::optional<FoundSiteState>> read();

  /// Takes the states that are damaged out of the way, so that what is written next has their
  /// places: each gets ".damaged" behind its name, also where a file has that name. What is wrong
  /// with them, in words; empty: nothing. A state of another format is left, as another version of
  /// the program reads it, and so is one that the system does not let be read. Fault::io where one
  /// cannot be renamed.
  Result<std::string> set_aside_damaged();
  /// Takes one state out of the way, `path` of FoundSiteState, whose contents are damaged; in words
  /// as above.
  Result<std::string> set_aside(const std::string& path, std::string_view why);

  /// Writes the state over the older one, with the life and the number that it has here. After a
  /// fault every further call returns it again.
  Status write(const SiteStateFile& state);
  /// When the last state was written, in seconds since 1970; 0: not yet. May be asked while
  /// another thread writes.
  double written_at() const { return written_at_; }

 private:
  std::string file(const char* name) const;
  void take_lock();
  void count_start();

  std::string path_;
  int lock_ = -1;
  std::uint32_t life_ = 0;
  std::uint32_t clock_behind_s_ = 0;
  std::uint32_t number_ = 0;
  std::size_t next_ = 0;  ///< the state to be written over
  std::atomic<double> written_at_ = 0;
  Status broken_;
};

}  // namespace sotto
