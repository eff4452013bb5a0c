// The phases of a training run as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing
// open: a process for each node, with a thread for its training, one for its communication, and
// each exchange as an asynchronous event. As an observer.
//
// The file is whole JSON between any two writes: events are buffered, a hundred kilobytes or so,
// and each time they are written the end of the file moves behind them. Nodes of several processes
// share the file; they take turns by a lock on it, for which a node that trains never waits: it
// keeps its events meanwhile, kMostHeld at most. After kMostBytes what follows is left out.
//
// A trace that ends early, for that or any other reason, is told once in each process.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <sotto/observe/tell.h>
#include <sotto/trainers/observer.h>

namespace sotto {

class PhaseTrace final : public Observer {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;
  static constexpr std::size_t kMostHeld = std::size_t{8} << 20U;

  /// Begins the file; times count from now. `config`: all settings as a JSON object. `first`: the
  /// node at which the beginning and warnings are shown. `tell` is called in round_done and ended,
  /// and as a node ends that is in a child of this process, or not node 0. Throws Error when the
  /// file cannot be written.
  PhaseTrace(std::string path, std::string_view config, Rank first, Tell tell);
  ~PhaseTrace() override;

  bool wants_phases() const override { return true; }
  void round_done(Round done) override;
  void phase(const PhaseSpan& span) override;
  void warning(const std::string& text) override;
  void node_ended(Rank node) override;
  void ended(const Status& status) override;

 private:
  /// Opens the file, in each process anew, since a lock belongs to the process that opened.
  void open(int flags);
  void name_node(Rank node);
  void add(const std::string& event);
  /// Writes the events held, if the file can be locked within `patience`.
  void flush(std::chrono::milliseconds patience);
  /// Locks the file: 0, or an errno; EWOULDBLOCK: another process has held the lock for all of
  /// `patience`.
  int take_turn(std::chrono::milliseconds patience) const;
  /// Leaves out all that follows.
  void give_up(SettingText trouble);
  void tell_trouble();
  std::int64_t since_begin(PhaseSpan::Time time) const;

  const std::string path_;
  const Rank first_;
  const Tell tell_;
  const pid_t creator_;
  const PhaseSpan::Time begin_;
  std::mutex mutex_;  ///< guards what follows
  int descriptor_ = -1;
  pid_t opener_ = -1;
  bool given_up_ = false;
  std::optional<SettingText> trouble_;  ///< reason to give up; empty once it is told
  std::atomic<bool> troubled_{false};   ///< a reason is to be told; unguarded
  std::string events_;
  PhaseSpan::Time flushed_;
  std::set<Rank> named_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace sotto
