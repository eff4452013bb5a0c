// The interface through which a training run reports its progress to dashboards, files and tests.
//
// A run without an observer reads no clock and measures nothing for one.
//
// Thread safety: every call but phase comes from node 0's thread, one at a time; phase comes from
// all threads of all nodes of the process, and must be quick: the node waits for it.
// Ownership: observers outlive the runs that they watch.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/ids.h>
#include <sotto/base/status.h>

namespace sotto {

struct RunEvaluation;

/// A phase of a node's work. `wire` overlaps with all others, and with itself; of a thread's others
/// each lies within another or beside it.
enum class RunPhase : std::uint8_t {
  round,     ///< a whole round: all but wire, evaluation and checkpoint lie within
  gradient,  ///< the task
  encode,    ///< the algorithm makes and compresses messages, and steps
  decode,    ///< the algorithm decodes and mixes frames
  wait,  ///< the thread waits for neighbours; without overlap the work on their frames lies within
  wire,  ///< an exchange is under way, from its posting until all of it is sent and here
  evaluation,  ///< the nodes meet; node 0 evaluates the averaged model
  checkpoint,
};
/// The phase in a word, "gradient".
std::string_view run_phase_name(RunPhase phase);

/// A stretch of a phase.
struct PhaseSpan {
  using Time = std::chrono::steady_clock::time_point;  ///< a moment

  Rank node = 0;
  RunPhase phase = RunPhase::round;
  bool carrier = false;  ///< the phase is of the node's thread for communication
  Round round = 0;       ///< counted from 0
  Time from{};
  Time until{};
  std::uint64_t bytes = 0;   ///< bytes that this node sent, for wire
  std::uint32_t bucket = 0;  ///< bucket of the exchange, for wire
};

/// The settings of a run that begins.
struct RunStart {
  int nodes = 0;
  Round done = 0;    ///< rounds of an earlier process, when the run goes on from a checkpoint
  Round rounds = 0;  ///< rounds in all
  Round rounds_per_epoch = 1;
  std::size_t dimension = 0;
};

class Observer {
 public:
  Observer() = default;
  virtual ~Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Whether `phase` is to be called. Asked before the run.
  virtual bool wants_phases() const { return false; }
  /// Whether evaluations are to tell how each node stands (RunEvaluation::nodes): a few hundred
  /// bytes a node more, and at most every kMeasureEvery rounds a round with measured compression.
  virtual bool wants_health() const { return false; }

  /// The run begins.
  virtual void began(const RunStart& /*start*/) {}
  /// `done` rounds are done.
  virtual void round_done(Round /*done*/) {}
  /// The model after `done` rounds is about to be evaluated.
  virtual void evaluation_began(Round /*done*/) {}
  /// An evaluation is done; or, of a loop of the caller's own, a report without one: then the loss
  /// is NaN.
  virtual void evaluated(const RunEvaluation& /*evaluation*/) {}
  /// A warning for the user; one line.
  virtual void warning(const std::string& /*text*/) {}
  /// A phase of a node is over; from that node's thread.
  virtual void phase(const PhaseSpan& /*span*/) {}
  /// A node of this process has ended; from its thread, as phase. Nothing of it follows.
  virtual void node_ended(Rank /*node*/) {}
  /// The run is over. This is the last call. The code that started the run makes it: with nodes in
  /// processes of their own, the parent does. In a loop of the caller's own node 0's optimizer
  /// makes it; where other nodes are threads of the process, their phases may follow.
  virtual void ended(const Status& /*status*/) {}
};

/// Rounds between measurements of the compression, at least.
inline constexpr Round kMeasureEvery = 64;

/// Passes all on to several, in order.
class Observers : public Observer {
 public:
  /// `observer` must outlive this object; null is ignored.
  void add(Observer* observer);

  bool wants_phases() const override;
  bool wants_health() const override;
  void began(const RunStart& start) override;
  void round_done(Round done) override;
  void evaluation_began(Round done) override;
  void evaluated(const RunEvaluation& evaluation) override;
  void warning(const std::string& text) override;
  void phase(const PhaseSpan& span) override;
  void node_ended(Rank node) override;
  void ended(const Status& status) override;

 private:
  std::vector<Observer*> all_;
  std::vector<Observer*> of_phases_;
};

}  // namespace sotto
