#include "run_entry.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_assembly.h>

namespace sotto {
namespace {

using sites::EpochStanding;
using Level = SiteEvent::Level;

/// A member looks this often whether its run is to be given up.
constexpr std::chrono::milliseconds kLookAtRunEvery{50};

/// Puts a model back in the end that others have been tried in place of.
class GivenModel {
 public:
  explicit GivenModel(std::span<float> model) : model_(model), given_(model.begin(), model.end()) {}
  ~GivenModel() { std::ranges::copy(given_, model_.begin()); }
  GivenModel(const GivenModel&) = delete;
  GivenModel& operator=(const GivenModel&) = delete;

 private:
  const std::span<float> model_;
  const std::vector<float> given_;
};

}  // namespace

RunEntry::RunEntry(Parts parts)
    : parts_(std::move(parts)),
      kept_(parts_.votes.folder(), parts_.options, parts_.layout, parts_.local, parts_.reporter),
      beginning_(parts_.options.begin_again_after),
      claim_(parts_.connections) {
  make_member(std::nullopt);  // what is refused is refused here
  read_kept();
  member_.reset();
  // All have left that run, and only with begin_again_after it is not the end.
  const auto& end = parts_.votes.end();
  if (parts_.options.begin_again_after && end && end->all_left) {
    standing_.votes_are_over();
  }
}

void RunEntry::read_kept() {
  if (parts_.votes.folder() == nullptr) {
    return;
  }
  const GivenModel given(parts_.local != nullptr ? parts_.local->run_model() : parts_.parameters);
  kept_.read(*member_);
}

void RunEntry::keep_parameters(bool kept) {
  parameters_kept_ = kept;
  if (member_) {
    member_->keep_parameters(kept);
  }
}

void RunEntry::make_member(const std::optional<sites::History>& founded) {
  if (parts_.local != nullptr) {
    parts_.local->take_initial();
  }
  sites::EpochSetup setup = member_setup(
      parts_.options, founded.has_value(),
      parts_.local != nullptr ? parts_.local->run_model() : parts_.parameters, parts_.layout);
  setup.history = founded.value_or(sites::History{});
  setup.incarnation = parts_.connections.incarnation();
  setup.stay = standing_.stay();
  member_.emplace(std::move(setup), parts_.clock());
  if (const auto& next = kept_.next()) {
    if (Status status = member_->begin_from(next->step, next->model); !status.ok()) {
      throw Error("state", status.message());
    }
    kept_.used();
  }
  if (unsound_) {
    member_->distrust_model();
  }
  if (parts_.connections.is_open()) {
    parts_.connections.links().forget_member();
  }
  member_->keep_parameters(parameters_kept_);
}

// -- what it sees ---------------------------------------------------------------------------------

bool RunEntry::founded() const {
  return !parts_.votes.found().empty() && standing_.votes_count() &&
         !by_store(parts_.options.roster);
}

bool RunEntry::is_empty() const {
  if (!parts_.connections.is_open() || (member_ && member_->standing() != EpochStanding::joining)) {
    return false;
  }
  const ElasticLinks& links = parts_.connections.links();
  const bool unknown = !member_ || member_->history() == sites::History{};
  return unknown ? !links.hears_of_run() : !links.hears_member_of(member_->history());
}

Round RunEntry::model_steps() const {
  if (member_) {
    return member_->has_sound_model() ? member_->applied() : Round{0};
  }
  return kept_.next() ? kept_.next()->step : Round{0};
}

BeginningSight RunEntry::beginning_sight(const NodeSight& sight) const {
  auto stand = BeginningSight::Stand::free;
  if (member_) {
    const bool stuck = member_->standing() == EpochStanding::member && !member_->wants_gradient() &&
                       parts_.reporter.wait_now(&*member_, sight).kind == ElasticWait::Kind::quorum;
    stand = stuck         ? BeginningSight::Stand::stuck
            : sight.empty ? BeginningSight::Stand::seeks
                          : BeginningSight::Stand::well;
  }
  const StoredRuns stored = claim_.stored();
  const ElasticLinks& links = parts_.connections.links();
  return {.stand = stand,
          .founder = claim_.founder(stored),
          .begun = stored.latest ? stored.latest->number : 0,
          .name = parts_.options.name,
          .model = model_steps(),
          .was_in = standing_.took_part() || sight.founded,
          .all_greeted = links.all_greeted(),
          .node = sight,
          .run = member_ ? member_->history() : standing_.given_up(),
          .heard = links.heard()};
}

// -- what it does ---------------------------------------------------------------------------------

Status RunEntry::follow(const NodeSight& sight) {
  parts_.connections.links().say({.model = model_steps(),
                                  .gave_up = beginning_.gave_up(),
                                  .first_seed = sight.first_seed,
                                  .stuck = standing_.stuck()});
  // The parameters are the caller's now, or it has told the run to go on without this node.
  const bool waits = member_ && Clock::now() - looked_ < kLookAtRunEvery;
  if (standing_.leaves() || waits || (parameters_kept_ && (member_ || kept_.next()))) {
    return {};
  }
  looked_ = Clock::now();
  if (!member_ && sight.first_seed && sight.founded) {
    make_member(sites::History{});
    const Status status = member_->load_founding_votes(parts_.votes.found());
    return status.ok() ? status : throw Error("state", status.message());
  }
  const BeginningSight seen = beginning_sight(sight);
  standing_.set_stuck(seen.stand == BeginningSight::Stand::stuck);
  switch (beginning_.look(seen, parts_.clock())) {
    case ElasticBeginning::Move::none:
      break;
    case ElasticBeginning::Move::join:
      claim_.drop();
      make_member(std::nullopt);
      break;
    case ElasticBeginning::Move::found:
      return found();
    case ElasticBeginning::Move::give_up:
      parts_.reporter.tell(
          Level::warning, SiteEvent::Kind::run_given_up,
          fmt::format("gives up the run, as {}, and keeps the model of step {}",
                      sight.empty ? "no member of it is heard" : "too many members are lost",
                      model_steps()));
      give_up();
      break;
  }
  return {};
}

Status RunEntry::found() {
  if (unsound_) {
    return {};  // it waits for a run of others
  }
  const auto founded = claim_.claim({.name = parts_.options.name,
                                     .incarnation = parts_.connections.incarnation(),
                                     .stay = standing_.stay(),
                                     .address = parts_.connections.roster().address(),
                                     .step = model_steps()});
  if (!founded) {
    return {};  // the store has yet to answer
  }
  // The votes for a run that was given up are no votes for this one, which is another decision.
  if (Status status = parts_.votes.drop(); !status.ok()) {
    return status;
  }
  standing_.found();
  if (const Round step = model_steps(); step > 0) {
    parts_.reporter.tell(Level::info, SiteEvent::Kind::started,
                         fmt::format("begins a run from the model of step {}", step));
  }
  make_member(founded);
  return {};
}

void RunEntry::give_up() {
  standing_.give_up(member_->history(), member_->self().stay);
  kept_.keep_of(*member_);
  unsound_ = !member_->has_sound_model();
  parts_.owed.note(member_->outcome());
  parts_.owed.lose(member_->applied());
  member_.reset();
  parts_.reporter.forget_run();
}

Status RunEntry::keep_or_yield() {
  const auto winner =
      standing_.leaves() ? std::nullopt : parts_.connections.links().outrun_by(*member_);
  if (!winner) {
    return {};
  }
  if (const Round steps = member_->step(); steps > member_->begun()) {
    return {Fault::unexpected,
            fmt::format("{} is in another run, which was begun apart from this one and has made "
                        "more steps than the {} of this one, so that this one ends: start this "
                        "node again{}, and it takes part in the other",
                        *winner, steps,
                        parts_.options.state.empty() || parts_.options.begin_again_after
                            ? ""
                            : " with another folder for the state")};
  }
  parts_.reporter.tell(
      Level::warning, SiteEvent::Kind::other_run,
      fmt::format("gives up its run, in which no step was made, for that of {}", *winner));
  give_up();
  return {};
}

// -- the end of a run -----------------------------------------------------------------------------

Status RunEntry::goes_on(const RosterSight& sight) const {
  const ElasticOptions& options = parts_.options;
  if (const auto& end = parts_.votes.end();
      end && !member_ && !by_store(options.roster) &&
      ((end->all_left && !options.begin_again_after) || rounds_are_over(end->steps))) {
    return {Fault::ended,
            fmt::format("the run that this node began is over, after step {}: to begin another, "
                        "give another folder for the state",
                        end->steps)};
  }
  if (const auto end = member_ ? std::nullopt : claim_.stored().end;
      end && ((end->all_left && !options.begin_again_after) || rounds_are_over(end->steps))) {
    return {Fault::ended,
            fmt::format("the run of {} is over, after step {}: to begin another, give another "
                        "folder or prefix",
                        options.roster.seeds.front(), end->steps)};
  }
  if (const auto& next = kept_.next(); !member_ && next && rounds_are_over(next->step)) {
    return {Fault::ended, fmt::format("the model in {} has had {} steps, and `rounds` is {}: give "
                                      "more rounds, or another folder",
                                      options.state, next->step, options.rounds)};
  }
  const bool newcomer = !member_ || member_->standing() == EpochStanding::joining;
  const bool heard = member_ ? member_->hears_members() : parts_.connections.links().hears_of_run();
  if (newcomer && !heard && (sight.others_ended || (member_ && member_->run_is_over()))) {
    const auto reported = parts_.reporter.report().epoch;  // none yet at the beginning
    return {Fault::ended,
            fmt::format("the run is over: all its nodes have left, and this one was {}; start its "
                        "nodes again to begin another",
                        reported && reported->put_out > 0 ? "put out before, as it did not answer"
                                                          : "not let in before")};
  }
  return {};
}

void RunEntry::note_membership() {
  const bool takes_part = member_ && member_->standing() == EpochStanding::member;
  claim_.note_run(takes_part ? std::optional(member_->history()) : std::nullopt);
  if (standing_.look(takes_part)) {
    static_cast<void>(parts_.votes.drop());  // a file that stays costs a wait later
  }
}

Status RunEntry::note_end(const RunEnd& end) const {
  if (member_) {
    claim_.note_end(member_->history(), end);
  }
  return parts_.votes.note(end);
}

}  // namespace sotto
