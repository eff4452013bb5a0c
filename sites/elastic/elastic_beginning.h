// When a node of an all-reduce whose nodes come and go joins a run, begins one, and gives up one
// that nobody is in any more (docs/epochs.md, "When most nodes are gone").
//
// Pure: is told what the node sees, and says what it is to do. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <sotto/base/ids.h>
#include <sotto/sites/elastic/elastic_hello.h>
#include <sotto/sites/elastic/node_sight.h>
#include <sotto/sites/epochs/epoch_node.h>

namespace sotto {

/// What a node sees before it takes part, or where its run stands still.
struct BeginningSight {
  /// How it stands.
  enum class Stand : std::uint8_t {
    free,   ///< it is in no run
    seeks,  ///< it wants to join a run of which it hears no member
    stuck,  ///< it is a member, and those that are lost are too many to go on without
    well,   ///< it is in a run, or on its way into one
  };
  /// Which node begins the first run.
  enum class Founder : std::uint8_t {
    first_seed,  ///< the one that has the address of the first seed
    unknown,     ///< nodes find each other by a store, which has yet to answer
    any,         ///< by the store no run was begun: any node
    nobody,      ///< by the store a run was begun: none, unless that one is lost
    this_node,   ///< by the store it is this one, of all that wanted to
  };
  Stand stand = Stand::free;
  Founder founder = Founder::first_seed;
  std::uint64_t begun = 0;   ///< runs that were begun by the store
  std::string name{};        ///< this node's name
  Round model = 0;           ///< steps that its model has had
  bool was_in = false;       ///< seeks: it was in that run before, or began it
  bool all_greeted = false;  ///< all that the roster names and does not suspect have said hello
  RosterSight node{};        ///< what it sees of the others
  sites::History run{};      ///< the run that it is in, or that it gave up last; zeros: none
  std::map<std::string, ElasticHello> heard{};  ///< what others say of themselves, by name
};

class ElasticBeginning {
 public:
  using Time = sites::EpochTime;  ///< from any beginning that its owner chooses

  /// What a node is to do.
  enum class Move : std::uint8_t {
    none,     ///< it waits, or goes on
    join,     ///< it joins the run that it hears of
    found,    ///< it begins a run from its model
    give_up,  ///< it gives up its place in the run, and keeps model and steps
  };

  /// A node that wanted to join a run is as it was before once it has heard of no member for so
  /// long: a channel that was lost is up again by then, or the roster suspects its node.
  static constexpr Time kForgetAfter{2'000};

  /// `again_after`: ElasticOptions::begin_again_after.
  explicit ElasticBeginning(std::optional<Time> again_after) : again_after_(again_after) {}

  /// What to do, by what is seen now.
  Move look(const BeginningSight& sight, Time now);
  /// Whether this node has waited so long for a run that it gave that up.
  bool gave_up() const { return gave_up_; }

 private:
  /// For how long something has held.
  class Span {
   public:
    /// Notes whether it holds; says for how long it has; none: it does not hold.
    std::optional<Time> note(bool holds, Time now);
    void reset() { since_.reset(); }

   private:
    std::optional<Time> since_;
  };

  Move look_free(const BeginningSight& sight, Time now);
  Move look_seeking(const BeginningSight& sight, Time now);
  /// Whether MIN nodes have been up for again_after_, and all of them have been heard; of one that
  /// is up and cannot be reached nothing is asked after twice as long.
  bool waited(const BeginningSight& sight, Time now);

  const std::optional<Time> again_after_;
  BeginningSight::Stand stand_ = BeginningSight::Stand::well;
  std::uint64_t begun_ = 0;  ///< as the latest sight had it
  Span enough_;              ///< MIN nodes are up
  Span heard_none_;          ///< all have been heard, and no member of the run that is sought
  bool gave_up_ = false;
};

}  // namespace sotto
