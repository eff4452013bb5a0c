#include <sotto/sites/elastic/elastic_beginning.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace sotto {
namespace {

using Founder = BeginningSight::Founder;
using Stand = BeginningSight::Stand;
using Move = ElasticBeginning::Move;

/// Whether a node is in a run that goes on, or may be. What others say of the run that this node
/// has given up may be from before they gave it up, too: only members that go on count there.
bool is_in_run(const BeginningSight& sight, const ElasticHello& hello) {
  const bool given_up = sight.run != sites::History{} && hello.history == sight.run;
  return given_up ? hello.member && !hello.self.stuck : hello.member || hello.hears;
}

bool any_heard(const BeginningSight& sight, const auto& holds) {
  return std::ranges::any_of(sight.heard, [&](const auto& item) { return holds(item.second); });
}

/// Whether this node's model has had more steps than those of the others; of as many, it has the
/// first seed's address, or else the least name.
bool is_newest(const BeginningSight& sight) {
  return std::ranges::none_of(sight.heard, [&](const auto& item) {
    const auto& [name, hello] = item;
    return std::tuple(hello.self.model, hello.self.first_seed, sight.name) >
           std::tuple(sight.model, sight.node.first_seed, name);
  });
}

/// Whether MIN nodes are there.
bool are_enough(const BeginningSight& sight) {
  return sight.node.up >= sight.node.least && 1 + sight.heard.size() >= sight.node.least;
}

}  // namespace

std::optional<ElasticBeginning::Time> ElasticBeginning::Span::note(bool holds, Time now) {
  if (!holds) {
    since_.reset();
    return std::nullopt;
  }
  since_ = since_.value_or(now);
  return now - *since_;
}

bool ElasticBeginning::waited(const BeginningSight& sight, Time now) {
  const bool in = sight.stand != Stand::free || sight.node.joined;
  const auto lasted = enough_.note(in && are_enough(sight), now);
  return again_after_ && lasted && *lasted >= *again_after_ &&
         (sight.all_greeted || *lasted >= 2 * *again_after_);
}

Move ElasticBeginning::look(const BeginningSight& sight, Time now) {
  if (sight.stand != stand_) {
    stand_ = sight.stand;
    enough_.reset();
    heard_none_.reset();
  }
  if (std::exchange(begun_, sight.begun) != sight.begun) {
    // Another node has begun a run, which is to be waited for as the one before was.
    enough_.reset();
    gave_up_ = false;
  }
  // A run that goes on is better than one that cannot.
  const bool elsewhere = any_heard(sight, [&](const ElasticHello& hello) {
    return hello.member && !hello.self.stuck && hello.history != sight.run;
  });
  switch (sight.stand) {
    case Stand::free:
      return look_free(sight, now);
    case Stand::seeks:
      return look_seeking(sight, now);
    case Stand::stuck:
      if (waited(sight, now) || (again_after_ && elsewhere)) {
        gave_up_ = true;
        return Move::give_up;
      }
      return Move::none;
    case Stand::well:
      gave_up_ = false;
      return Move::none;
  }
  return Move::none;
}

Move ElasticBeginning::look_free(const BeginningSight& sight, Time now) {
  if (any_heard(sight, [&](const ElasticHello& hello) { return is_in_run(sight, hello); })) {
    enough_.reset();
    return Move::join;
  }
  if (sight.founder == Founder::this_node) {
    return Move::found;  // no other node may
  }
  // Where a model is there, others may have a newer one, and are given time to come.
  const bool first = sight.model == 0 || !again_after_;
  const bool others = sight.node.up > 1 && sight.all_greeted;
  const bool founder = sight.founder == Founder::any ||
                       (sight.founder == Founder::first_seed && sight.node.first_seed);
  if (founder && sight.node.joined && sight.node.up >= sight.node.least &&
      (sight.node.alone || others) && first && is_newest(sight)) {
    return Move::found;
  }
  gave_up_ = waited(sight, now) || gave_up_;
  // One that has waited has seen what another one would wait for. With a store it may have been for
  // a run before the latest one.
  const bool by_store = sight.founder != Founder::first_seed;
  const bool waited_for =
      gave_up_ ||
      (!by_store && any_heard(sight, [](const ElasticHello& hello) { return hello.self.gave_up; }));
  const bool could = sight.node.joined && are_enough(sight) && (sight.all_greeted || gave_up_);
  // Nodes without a model may be those of a run that is over, started again: of these the first
  // seed alone begins a run, which knows by its votes, or any that knows by the store.
  const bool knows = sight.founder == Founder::any || sight.founder == Founder::nobody;
  const bool may =
      sight.founder != Founder::unknown && (sight.model > 0 || sight.node.first_seed || knows);
  return again_after_ && could && waited_for && may && is_newest(sight) ? Move::found : Move::none;
}

Move ElasticBeginning::look_seeking(const BeginningSight& sight, Time now) {
  const auto lasted = heard_none_.note(sight.all_greeted, now);
  const bool elsewhere =
      any_heard(sight, [&](const ElasticHello& hello) { return is_in_run(sight, hello); });
  if (lasted && *lasted >= kForgetAfter && (!sight.was_in || (again_after_ && elsewhere))) {
    return Move::give_up;
  }
  if (waited(sight, now)) {
    gave_up_ = true;
    return Move::give_up;
  }
  return Move::none;
}

}  // namespace sotto
