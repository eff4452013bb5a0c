// How the node behind an ElasticOptimizer comes into a run, begins one from its model, and gives
// one up; and the model in its folder.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_assembly.h>
#include <sotto/sites/process/state/site_folder.h>

#include "internal/elastic_optimizer_run.h"

namespace sotto {
namespace {

using sites::EpochLocalSteps;
using sites::EpochStanding;
using Level = SiteEvent::Level;

/// A member looks this often whether its run is to be given up.
constexpr std::chrono::milliseconds kLookAtRunEvery{50};

}  // namespace

void ElasticOptimizer::Run::make_member(const std::optional<sites::History>& founded) {
  if (local_) {
    local_->take_initial();
  }
  sites::EpochSetup setup = member_setup(options_, founded.has_value(),
                                         local_ ? local_->run_model() : parameters_, layout_);
  setup.history = founded.value_or(sites::History{});
  setup.incarnation = incarnation_;
  setup.stay = standing_.stay();
  member_.emplace(std::move(setup), now());
  if (const auto& next = kept_.next()) {
    if (Status status = member_->begin_from(next->step, next->model); !status.ok()) {
      throw Error("state", status.message());
    }
    kept_.used();
  }
  if (links_) {
    links_->forget_member();
  }
  member_->keep_parameters(caller_away_);
}

void ElasticOptimizer::Run::keep_parameters(bool kept) {
  caller_away_ = kept;
  if (member_) {
    member_->keep_parameters(kept);
  }
}

Status ElasticOptimizer::Run::open() {
  if (links_) {
    return {};
  }
  reporter_.enter(SitePhase::joining);
  if (!roster_) {
    search_began_ = now();
    roster_ = std::make_unique<RunRoster>(options_.roster, options_.name, options_.listen,
                                          incarnation_, SiteFolder::life_by_clock(), list_,
                                          settings_, RosterReach::all);
    claim_.use(roster_->store());
  }
  auto made = make_channels(channels_for(options_, parameters_.size(), roster_->address(), list_));
  if (!made.ok()) {
    return made.status();
  }
  channels_ = std::move(*made);
  links_.emplace(ElasticLinks::Parts{
      .name = options_.name,
      .incarnation = incarnation_,
      .channels = *channels_,
      .list = *list_,
      .connect_within = options_.timeout,
      .clock = [this] { return now(); },
      .keep = [this](std::span<const std::byte> votes) { return votes_.keep(votes); },
      .listener = listener_});
  reporter_.tell(Level::info, SiteEvent::Kind::listening, channels_->address());
  kept_.tell();
  roster_->list_again();
  return {};
}

bool ElasticOptimizer::Run::run_is_empty() const {
  if (!links_ || (member_ && member_->standing() != EpochStanding::joining)) {
    return false;
  }
  const bool unknown = !member_ || member_->history() == sites::History{};
  return unknown ? !links_->hears_of_run() : !links_->hears_member_of(member_->history());
}

NodeSight ElasticOptimizer::Run::sight() const {
  NodeSight sight = sight_;
  sight.alone = sight.up == 1 &&
                (options_.roster.seeds.empty() || now() >= search_began_ + options_.found_after);
  sight.founded = has_votes();
  sight.empty = run_is_empty();
  return sight;
}

BeginningSight ElasticOptimizer::Run::beginning_sight() const {
  auto stand = BeginningSight::Stand::free;
  if (member_) {
    const bool stuck = member_->standing() == EpochStanding::member && !member_->wants_gradient() &&
                       reporter_.wait_now(parts()).kind == ElasticWait::Kind::quorum;
    stand = stuck            ? BeginningSight::Stand::stuck
            : run_is_empty() ? BeginningSight::Stand::seeks
                             : BeginningSight::Stand::well;
  }
  const StoredRuns stored = claim_.stored();
  return {.stand = stand,
          .founder = claim_.founder(stored),
          .begun = stored.latest ? stored.latest->number : 0,
          .name = options_.name,
          .model = model_steps(),
          .was_in = standing_.took_part() || has_votes(),
          .all_greeted = links_->all_greeted(),
          .node = sight(),
          .run = member_ ? member_->history() : standing_.given_up(),
          .heard = links_->heard()};
}

Status ElasticOptimizer::Run::follow_beginning() {
  links_->say({.model = model_steps(),
               .gave_up = beginning_.gave_up(),
               .first_seed = sight_.first_seed,
               .stuck = standing_.stuck()});
  // The parameters are the caller's now, or it has told the run to go on without this node.
  const bool waits = member_ && Clock::now() - looked_ < kLookAtRunEvery;
  if (standing_.leaves() || waits || (caller_away_ && (member_ || kept_.next()))) {
    return {};
  }
  looked_ = Clock::now();
  if (!member_ && sight_.first_seed && has_votes()) {
    make_member(sites::History{});
    const Status status = member_->load_founding_votes(votes_.found());
    return status.ok() ? status : throw Error("state", status.message());
  }
  const BeginningSight seen = beginning_sight();
  standing_.set_stuck(seen.stand == BeginningSight::Stand::stuck);
  switch (beginning_.look(seen, now())) {
    case ElasticBeginning::Move::none:
      break;
    case ElasticBeginning::Move::join:
      claim_.drop();
      make_member(std::nullopt);
      break;
    case ElasticBeginning::Move::found:
      return found_run();
    case ElasticBeginning::Move::give_up:
      reporter_.tell(
          Level::warning, SiteEvent::Kind::run_given_up,
          fmt::format("gives up the run, as {}, and keeps the model of step {}",
                      run_is_empty() ? "no member of it is heard" : "too many members are lost",
                      model_steps()));
      give_up_run();
      break;
  }
  return {};
}

Status ElasticOptimizer::Run::found_run() {
  const auto founded = claim_.claim({.name = options_.name,
                                     .incarnation = incarnation_,
                                     .stay = standing_.stay(),
                                     .address = roster_->address(),
                                     .step = model_steps()});
  if (!founded) {
    return {};  // the store has yet to answer
  }
  // The votes for a run that was given up are no votes for this one, which is another decision.
  if (Status status = votes_.drop(); !status.ok()) {
    return status;
  }
  standing_.found();
  if (const Round step = model_steps(); step > 0) {
    reporter_.tell(Level::info, SiteEvent::Kind::started,
                   fmt::format("begins a run from the model of step {}", step));
  }
  make_member(founded);
  return {};
}

void ElasticOptimizer::Run::give_up_run() {
  standing_.give_up(member_->history(), member_->self().stay);
  kept_.keep_of(*member_);
  owed_.note(member_->outcome());
  owed_.lose(member_->applied());
  member_.reset();
  reporter_.forget_run();
}

Status ElasticOptimizer::Run::take_part() {
  if (takes_part()) {
    return {};
  }
  Status status = node_.guarded([&] {
    Status opened = open();
    return opened.ok() ? opened : node_.fail(opened);
  });
  if (status.ok()) {
    status = await([this] { return takes_part(); });
  }
  if (status.ok() && local_) {
    local_->begin();
  }
  return status;
}

Status ElasticOptimizer::Run::connect() {
  const Visit visit(node_);
  const Status& fault = node_.usable();
  if (!fault.ok() || takes_part()) {
    return fault;
  }
  Status status = take_part();
  if (status.ok()) {
    owed_.begin();
  }
  return status;
}

}  // namespace sotto
