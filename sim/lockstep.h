// Runs N algorithms in lock step in one thread, without a transport: frames are handed over by
// copying. The reference that every other driver is held to, and the tests' work-horse.
//
// One round: begin_round on every node, the gradients in rank order, and every exchange carried as
// soon as its peers have posted theirs (or as late as can be, see Delivery). Deterministic. One
// thread at a time. Ownership: owns the algorithms; the parameters stay the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <sotto/base/exchange.h>
#include <sotto/base/status.h>
#include <sotto/optim/algorithm.h>
#include <sotto/sim/gradient_function.h>

namespace sotto {

/// The time when an exchange is carried. The numbers must not depend on it.
enum class Delivery {
  eager,  ///< each exchange as soon as it is posted
  late,   ///< an exchange only when nodes cannot go on without it: all overlap is used
};

/// Traffic along one directed edge, headers included.
struct EdgeTraffic {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

/// Takes its nodes through whole rounds, each with the exchanges that it asks for.
class LockstepDriver {
 public:
  /// Traffic by (from, to).
  using Traffic = std::map<std::pair<Rank, Rank>, EdgeTraffic>;

  /// A driver without nodes.
  explicit LockstepDriver(Delivery delivery = Delivery::eager) : delivery_(delivery) {}

  /// Adds the next rank; all are added before the first round.
  void add(std::unique_ptr<Algorithm> algorithm);

  std::size_t size() const { return nodes_.size(); }
  /// A node's algorithm.
  Algorithm& node(std::size_t rank) { return *nodes_[rank].algorithm; }
  /// A node's algorithm.
  const Algorithm& node(std::size_t rank) const { return *nodes_[rank].algorithm; }

  /// Runs `rounds` rounds and carries what is then still under way, so that all nodes are idle.
  /// Stops at the first fault, in rank order, and returns it. Fault::deadline if nodes wait for
  /// frames that no node posts.
  Status run(Round rounds, const GradientFunction& gradient);

  /// Traffic so far by (from, to).
  const Traffic& traffic() const { return traffic_; }
  /// Bytes that a node has sent so far, headers included.
  std::uint64_t bytes_sent(Rank rank) const;

 private:
  struct Node {
    std::unique_ptr<Algorithm> algorithm;
    Exchange exchange;
    bool posted = false;
    bool ready = false;  ///< all peers of its exchange have posted theirs
    std::vector<float> gradient;
  };

  Status run_round(const GradientFunction& gradient);
  bool all_nodes(bool (Algorithm::*ready)() const) const;
  /// Takes the next exchange of a node that has none under way, if there is one.
  Status take_exchange(Node& node);
  /// Carries exchanges, and those that they lead to, until none is posted.
  Status deliver();
  /// Marks the exchanges that can be carried: all of their peers have posted exchanges of the same
  /// tag, and so on for the peers' peers. False when there are none.
  bool find_ready();
  bool peers_ready(Rank rank) const;
  /// Counts what `rank` sends, and gives it all that it awaits.
  Status hand_over(Rank rank);

  Delivery delivery_;
  std::vector<Node> nodes_;
  Traffic traffic_;
};

}  // namespace sotto
