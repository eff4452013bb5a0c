// The phases of a training run as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing
// open: a process for each node, with a thread for its training, one for its communication, and
// each exchange as an asynchronous event. As an observer.
//
// The file is whole JSON between any two writes: events are buffered, a hundred kilobytes at most,
// and each time they are written the end of the file moves behind them. Nodes of several processes
// share the file; they take turns by a lock on it. After kMostBytes what follows is left out.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <mutex>
#include <set>
#include <string>

#include <sotto/trainers/observer.h>

#include "output.h"

namespace sotto::cli {

class PhaseTrace final : public Observer {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  /// Begins the file; times count from now. `config`: all settings. Throws Error when it cannot be
  /// written.
  PhaseTrace(std::string path, const Json& config);
  ~PhaseTrace() override;

  bool wants_phases() const override { return true; }
  void phase(const PhaseSpan& span) override;
  void warning(const std::string& text) override;
  void node_ended(Rank node) override;

 private:
  /// Opens the file, in each process anew: locks are those of who opened.
  void open(int flags);
  void name_node(Rank node);
  void add(const std::string& event);
  void flush();
  std::int64_t since_begin(PhaseSpan::Time time) const;

  const std::string path_;
  const PhaseSpan::Time begin_;
  std::mutex mutex_;  ///< guards what follows
  int descriptor_ = -1;
  pid_t opener_ = -1;
  bool full_ = false;
  std::string events_;
  PhaseSpan::Time flushed_;
  std::set<Rank> named_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace sotto::cli
