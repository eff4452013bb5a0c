// A node that a program calls, and that a thread of its own serves between two calls: keeps the two
// apart, says when the run is over, and remembers the fault that ended the node. What SiteOptimizer
// and ElasticOptimizer have in common; not for users.
//
// Thread safety: all but stopped(), hurried(), rounds_are_over() and over() belong to the holder of
// a Visit, or of pause(), and to the functions in Parts.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>

#include <sotto/base/background_service.h>
#include <sotto/base/elapsed.h>
#include <sotto/base/ids.h>
#include <sotto/base/status.h>
#include <sotto/trainers/result.h>

namespace sotto {

class CalledNode {
 public:
  /// What the node is called, when its run is over, and what it does.
  struct Parts {
    std::string_view noun;                     ///< what messages call it: "site", "node"
    const std::atomic<bool>* stop = nullptr;   ///< once true, the run is over; null: nobody says so
    const std::atomic<bool>* haste = nullptr;  ///< once true, it goes at once; null: nobody says so
    Round rounds = 0;                          ///< after so many the run is over; 0: it goes on
    std::chrono::milliseconds serve_every{};   ///< while the program is away
    std::function<Status()> serve{};           ///< looks after the peers; a fault ends the node
    std::function<bool()> computes{};          ///< whether the program computes while it is away
    /// Leaves the peers, which are not to wait for a node that has failed, and reports that.
    std::function<void()> fail{};
    std::function<void(const Status&)> tell{};  ///< tells the listener of a fault
  };
  /// Begins to serve; `parts` may use what was made before this object.
  explicit CalledNode(const Parts& parts);

  /// One call of the program: keeps the node's own thread out, and counts the time since the
  /// program's last call.
  class Visit {
   public:
    /// Waits until the node's own thread pauses; `node` must outlive the visit.
    explicit Visit(CalledNode& node);
    ~Visit() { node_.left_ = Clock::now(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    CalledNode& node_;
    std::unique_lock<std::mutex> lock_;
  };
  /// Keeps the node's own thread out while the lock is held.
  std::unique_lock<std::mutex> pause() { return service_.pause(); }

  /// Whether the node was told to stop.
  bool stopped() const { return parts_.stop != nullptr && *parts_.stop; }
  /// Whether the node was told to go at once, whatever it still waits for.
  bool hurried() const { return parts_.haste != nullptr && *parts_.haste; }
  /// Whether all rounds of the run are done, if `done` are.
  bool rounds_are_over(Round done) const { return parts_.rounds > 0 && done >= parts_.rounds; }
  /// Whether the run is over, by either.
  bool over(Round done) const { return stopped() || rounds_are_over(done); }

  /// The fault that ended the node; ok: none. Throws Error once the node is finished, as no step
  /// follows.
  const Status& usable() const;
  /// The fault that ended the node; ok: none.
  const Status& status() const { return status_; }
  /// Whether the program has finished the node.
  bool finished() const { return finished_; }
  /// The program finishes the node.
  void finish() { finished_ = true; }
  /// Times of this process.
  TimeSplit& time() { return time_; }

  /// The node's fault from now on: it leaves the peers, and tells the listener, which may throw.
  Status fail(const Status& status);
  /// What `body` returns. What it throws is the node's fault from now on, too, of which the caller
  /// hears: the node may have ended between an offer and its write, so that nothing may leave.
  template <typename Body>
  auto guarded(const Body& body) -> decltype(body()) {
    try {
      return body();
    } catch (const std::exception& exception) {
      note({Fault::unexpected, exception.what()});
      throw;
    } catch (...) {
      note(of_no_standard());
      throw;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// What is said of an exception that does not say what it is.
  static Status of_no_standard() {
    return {Fault::unexpected,
            "something was thrown that is no std::exception: look at the program's listener"};
  }
  /// A later fault is only a consequence of the first.
  void note(const Status& status);
  void serve();

  const Parts parts_;
  Status status_;
  bool finished_ = false;
  TimeSplit time_;
  Clock::time_point left_ = Clock::now();  ///< when the program's last call ended
  BackgroundService service_;              ///< last: it uses all members above
};

}  // namespace sotto
