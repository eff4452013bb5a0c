#include <sotto/sites/live/epoch_beginning.h>

#include <algorithm>
#include <tuple>

namespace sotto {
namespace {

using Stand = BeginningSight::Stand;
using Move = EpochBeginning::Move;

bool is_in_run(const EpochHello& hello) { return hello.member || hello.hears; }

bool any_heard(const BeginningSight& sight, const auto& holds) {
  return std::ranges::any_of(sight.heard, [&](const auto& item) { return holds(item.second); });
}

/// Whether this node's model has had more steps than those of the others; of as many, it has the
/// first seed's address, or else the least name.
bool is_newest(const BeginningSight& sight) {
  return std::ranges::none_of(sight.heard, [&](const auto& item) {
    const auto& [name, hello] = item;
    return std::tuple(hello.model, hello.first_seed, sight.name) >
           std::tuple(sight.model, sight.first_seed, name);
  });
}

/// Whether MIN nodes are there.
bool are_enough(const BeginningSight& sight) {
  return sight.nodes_up >= sight.least && 1 + sight.heard.size() >= sight.least;
}

}  // namespace

bool EpochBeginning::lasts(bool holds, Time time, Time now) {
  if (!holds) {
    since_.reset();
    return false;
  }
  since_ = since_.value_or(now);
  return now - *since_ >= time;
}

Move EpochBeginning::look(const BeginningSight& sight, Time now) {
  if (sight.stand != stand_) {
    stand_ = sight.stand;
    since_.reset();
  }
  switch (sight.stand) {
    case Stand::free:
      return look_free(sight, now);
    case Stand::seeks:
      return look_seeking(sight, now);
    case Stand::stuck:
      if (again_after_ && lasts(are_enough(sight), *again_after_, now)) {
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

Move EpochBeginning::look_free(const BeginningSight& sight, Time now) {
  if (any_heard(sight, is_in_run)) {
    since_.reset();
    return Move::join;
  }
  // Where a model is there, others may have a newer one, and are given time to come.
  const bool first = sight.model == 0 || !again_after_;
  const bool others = sight.nodes_up > 1 && sight.all_greeted;
  if (sight.first_seed && sight.up && sight.nodes_up >= sight.least && (sight.alone || others) &&
      first && is_newest(sight)) {
    return Move::found;
  }
  const bool could = sight.up && sight.all_greeted && are_enough(sight);
  if (again_after_ && lasts(could, *again_after_, now)) {
    gave_up_ = true;
  }
  // One that has waited has seen what another one would wait for.
  const bool waited =
      gave_up_ || any_heard(sight, [](const EpochHello& hello) { return hello.gave_up; });
  // Nodes without a model may be those of a run that is over, started again: of these the first
  // seed alone begins a run, which knows by its votes.
  const bool may = sight.model > 0 || sight.first_seed;
  return again_after_ && could && waited && may && is_newest(sight) ? Move::found : Move::none;
}

Move EpochBeginning::look_seeking(const BeginningSight& sight, Time now) {
  const bool lasted = lasts(sight.all_greeted, kForgetAfter, now);
  const bool elsewhere = any_heard(sight, is_in_run);
  if (lasted && (!sight.was_in || (again_after_ && elsewhere))) {
    return Move::give_up;
  }
  if (again_after_ && are_enough(sight) && lasts(sight.all_greeted, *again_after_, now)) {
    gave_up_ = true;
    return Move::give_up;
  }
  return Move::none;
}

}  // namespace sotto
