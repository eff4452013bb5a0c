#include <sotto/sites/live/epoch_optimizer.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/sites/live/epoch_assembly.h>

#include "internal/epoch_optimizer_run.h"

namespace sotto {
namespace {

using namespace std::chrono_literals;
using sites::EpochStanding;
using Level = SiteEvent::Level;

/// A wait looks this often whether it is to end.
constexpr auto kLook = 20ms;
/// While the caller is away, the others are answered this often.
constexpr auto kAnswerEvery = 5ms;
/// The roster is asked this often who is there.
constexpr auto kAskRosterEvery = 50ms;

}  // namespace

EpochOptimizer::Run::Run(const EpochOptions& options, std::span<float> parameters,
                         const ParameterLayout& layout, SiteListener listener)
    : options_(options),
      parameters_(parameters),
      layout_(complete_layout(layout, parameters.size())),
      listener_(std::move(listener)),
      settings_(settings_text(agreed_settings(options_, layout_))),
      votes_(options_.state, options_.name),
      list_(std::make_shared<AllowList>(std::vector<TrustedPeer>{
          {.rank = 0,
           .name = options_.name,
           .key = options_.roster.key.node_keys(options_.name).public_key}})),
      reporter_(options_, settings_, parameters.size(), listener_),
      local_(make_local_steps(options_, parameters_, layout_)),
      state_(votes_.folder(), options_, layout_),
      beginning_(options_.begin_again_after),
      node_({.noun = "node",
             .stop = options_.stop,
             .haste = options_.haste,
             .rounds = options_.rounds,
             .serve_every = kAnswerEvery,
             .serve = [this] { return serve(); },
             .computes = [this] { return member_ && !pending_; },
             .fail = [this] { report_failure(); },
             .tell =
                 [this](const Status& fault) {
                   reporter_.tell(Level::error, SiteEvent::Kind::failed, fault.message());
                 }}) {
  const auto lock = node_.pause();
  make_member(std::nullopt);  // what is refused is refused here
  member_.reset();
  load_state();
  // All have left that run, and only with begin_again_after it is not the end.
  votes_given_up_ = options_.begin_again_after && votes_.end() && votes_.end()->all_left;
}

void EpochOptimizer::Run::report_failure() {
  close();
  reporter_.enter(SitePhase::failed);
  reporter_.refresh(parts());
}

void EpochOptimizer::Run::close() {
  links_.reset();
  channels_.reset();
  roster_.reset();
}

// -- waiting --------------------------------------------------------------------------------------

void EpochOptimizer::Run::follow_roster() {
  for (SiteEvent& event : roster_->news()) {
    event.round = round_;
    if (listener_) {
      listener_(event);
    }
  }
  if (Clock::now() - asked_ < kAskRosterEvery) {
    return;
  }
  asked_ = Clock::now();
  const sites::RosterView view = roster_->view();
  std::vector<KnownNode> nodes;
  for (const sites::RosterMember& member : view.members) {
    const sites::RosterEntry& entry = member.entry;
    if (entry.name != options_.name && !is_gone(entry.phase) && !member.conflict) {
      nodes.push_back({entry.name, entry.incarnation, member.suspected});
    }
  }
  up_ = view.up;
  joined_ = view.standing == sites::RosterStanding::up;
  others_ended_ = view.over;
  first_seed_ = roster_->has_first_seed();
  asked_seeds_ = view.asked;
  const bool takes_part = member_ && member_->standing() == EpochStanding::member;
  took_part_ = took_part_ || takes_part;
  if (SeedStore* const store = roster_->store()) {
    store->note_run(takes_part ? std::optional(member_->history()) : std::nullopt);
  }
  if (takes_part && votes_given_up_ && !std::exchange(founded_, true)) {
    // It is in another run than that of its votes. A file that stays costs a wait later.
    static_cast<void>(votes_.drop());
  }
  roster_->set_waiting(!took_part_);
  links_->set_nodes(std::move(nodes));
}

Status EpochOptimizer::Run::run_goes_on() const {
  if (const auto& end = votes_.end();
      end && !member_ &&
      ((end->all_left && !options_.begin_again_after) || node_.rounds_are_over(end->steps))) {
    return {Fault::ended,
            fmt::format("the run that this node began is over, after step {}: to begin another, "
                        "give another folder for the state",
                        end->steps)};
  }
  if (const auto end = member_ ? std::nullopt : stored_runs().end;
      end &&
      ((end->all_left && !options_.begin_again_after) || node_.rounds_are_over(end->steps))) {
    return {Fault::ended,
            fmt::format("the run of {} is over, after step {}: to begin another, give another "
                        "folder or prefix",
                        options_.roster.seeds.front(), end->steps)};
  }
  if (!member_ && begin_ && node_.rounds_are_over(begin_->step)) {
    return {Fault::ended, fmt::format("the model in {} has had {} steps, and `rounds` is {}: give "
                                      "more rounds, or another folder",
                                      options_.state, begin_->step, options_.rounds)};
  }
  const bool newcomer = !member_ || member_->standing() == EpochStanding::joining;
  const bool heard = member_ ? member_->hears_members() : links_->hears_of_run();
  if (newcomer && !heard && (others_ended_ || (member_ && member_->run_is_over()))) {
    return {
        Fault::ended,
        fmt::format("the run is over: all its nodes have left, and this one was {}; start its "
                    "nodes again to begin another",
                    reporter_.report().epoch->put_out > 0 ? "put out before, as it did not answer"
                                                          : "not let in before")};
  }
  return {};
}

Status EpochOptimizer::Run::keep_or_yield() {
  const auto winner = leaves_ ? std::nullopt : links_->outrun_by(*member_);
  if (!winner) {
    return {};
  }
  if (const Round steps = member_->step(); steps > member_->begun()) {
    return {Fault::unexpected,
            fmt::format("{} is in another run, which was begun apart from this one and has made "
                        "more steps than the {} of this one, so that this one ends: start this "
                        "node again{}, and it takes part in the other",
                        *winner, steps,
                        options_.state.empty() || options_.begin_again_after
                            ? ""
                            : " with another folder for the state")};
  }
  reporter_.tell(
      Level::warning, SiteEvent::Kind::other_run,
      fmt::format("gives up its run, in which no step was made, for that of {}", *winner));
  give_up_run();
  return {};
}

Status EpochOptimizer::Run::pump_once(Clock::duration longest) {
  follow_roster();
  Status status = roster_->standing();
  if (status.ok()) {
    status = run_goes_on();
  }
  if (!status.ok()) {
    return status;
  }
  status = follow_beginning();
  if (!status.ok()) {
    return status;
  }
  status = links_->pump(Deadline::after(longest), member_ ? &*member_ : nullptr);
  if (status.ok() && member_) {
    status = member_->fault();
  }
  if (status.ok() && member_) {
    status = keep_or_yield();
  }
  if (member_) {
    reporter_.note(member_->take_left_out());
  }
  reporter_.follow(parts());
  pumped_ = Clock::now();
  return status;
}

Status EpochOptimizer::Run::pump(Clock::duration longest) {
  return node_.guarded([&] {
    Status status = pump_once(longest);
    return status.ok() ? status : node_.fail(status);
  });
}

Status EpochOptimizer::Run::await(const std::function<bool()>& done) {
  const auto start = Clock::now();
  keep_parameters(false);
  while (true) {
    round_ = member_ ? member_->applied() : round_;
    const bool ready = done();
    // A step that needs nobody must not leave the others unanswered.
    if (ready && Clock::now() - pumped_ < kAnswerEvery) {
      return {};
    }
    if (!ready && (node_.stopped() || cancelled_.exchange(false))) {
      return {Fault::stopped, "was told to stop before the wait was over"};
    }
    if (!ready && options_.wait_limit && Clock::now() - start >= *options_.wait_limit) {
      return {Fault::deadline,
              fmt::format("the wait limit of {:g} s is over: {}",
                          std::chrono::duration<double>(*options_.wait_limit).count(),
                          words_of(reporter_.wait_now(parts())))};
    }
    if (Status status = pump(ready ? 0ms : kLook); !status.ok()) {
      return status;
    }
  }
}

Status EpochOptimizer::Run::serve() {
  if (!links_) {
    return {};
  }
  keep_parameters(true);  // they are the caller's between two calls
  return pump_once(0ms);
}

// -- steps ----------------------------------------------------------------------------------------

Result<EpochStep> EpochOptimizer::Run::outcome() {
  const auto start = Clock::now();
  reporter_.enter(SitePhase::waiting);
  Status status = await([this] {
    if (!outcome_) {
      outcome_ = member_ ? member_->outcome() : std::nullopt;
    }
    return outcome_ && (takes_part() || node_.rounds_are_over(round_));
  });
  node_.time().wait_s += seconds_since(start);
  // A step that is made is told, also where the wait for the next one is cut short.
  const bool cut_short = status.fault() == Fault::deadline || status.fault() == Fault::stopped;
  if (!status.ok() && !(cut_short && outcome_)) {
    return status;
  }
  if (local_) {
    local_->begin();
  }
  if (member_) {
    keep_state(false);
  }
  reporter_.enter(SitePhase::training);
  reporter_.step_done(*std::exchange(pending_, {}), outcome_->left_out);
  return EpochStep{.round = round_, .left_out = std::exchange(outcome_, {})->left_out};
}

void EpochOptimizer::Run::require_none_pending() const {
  if (pending_) {
    throw Error("gradient", "one is pending: go on with wait()");
  }
}

Status EpochOptimizer::Run::take_part_with_gradient() {
  if (takes_part()) {
    return {};
  }
  const std::vector<float> before(parameters_.begin(), parameters_.end());
  const Round then = round_;
  // A wait that ends early may have moved them, and the caller comes again with that gradient.
  Status status = take_part();
  misses_ = misses_ || round_ != then || !std::ranges::equal(before, parameters_);
  return status;
}

EpochStep EpochOptimizer::Run::leave_out() {
  misses_ = false;
  given_.clear();
  return {.round = round_, .left_out = true};
}

Result<EpochStep> EpochOptimizer::Run::step(std::span<const float> gradient, double loss) {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  require_none_pending();
  if (!given_.empty() && !misses_) {
    throw Error("gradient", "parts of it were given; end this step with step_by_parts() first");
  }
  if (gradient.size() != parameters_.size()) {
    refuse("gradient", fmt::format("{} elements", gradient.size()),
           fmt::format("it must have those of the parameters, {}", parameters_.size()));
  }
  if (Status status = take_part_with_gradient(); !status.ok()) {
    return status;
  }
  if (misses_) {
    return leave_out();
  }
  return local_ ? local_step(gradient, loss) : offer(gradient, loss);
}

Result<EpochStep> EpochOptimizer::Run::offer(std::span<const float> gradient, double loss) {
  return offered(member_->offer(gradient, now()), loss);
}

Result<EpochStep> EpochOptimizer::Run::offered(const Status& taken, double loss) {
  if (!taken.ok()) {
    return refusal(taken);
  }
  pending_ = loss;
  return outcome();
}

Status EpochOptimizer::Run::refusal(const Status& status) {
  return status.fault() == Fault::non_finite && member_->fault().ok() ? status : node_.fail(status);
}

void EpochOptimizer::Run::require_part(std::size_t first, std::size_t elements) const {
  const auto refuse_part = [&](const Message& why) {
    refuse("gradient part", fmt::format("{} elements from {} on", elements, first), why);
  };
  if (local_) {
    refuse_part("with local steps a node sends what they have come to, and no gradient");
  }
  if (first > parameters_.size() || elements > parameters_.size() - first) {
    refuse_part(fmt::format("there are {} parameters", parameters_.size()));
  }
  if (given_.overlap(first, elements)) {
    refuse_part("some of them have been in another part of this step's gradient");
  }
}

Status EpochOptimizer::Run::gradient_part(std::size_t first, std::span<const float> part) {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  require_none_pending();
  if (misses_ && given_.elements() == parameters_.size()) {
    given_.clear();  // a step of that gradient has ended early, and the caller gives another one
  }
  require_part(first, part.size());
  if (part.empty()) {
    return {};
  }
  if (given_.empty()) {
    if (Status status = take_part_with_gradient(); !status.ok()) {
      return status;
    }
  }
  if (!misses_) {
    if (Status status = member_->gradient_part(first, part, now()); !status.ok()) {
      return refusal(status);
    }
  }
  given_.add(first, part.size());
  if (!(member_ && member_->has_parcels()) && Clock::now() - pumped_ < kAnswerEvery) {
    return {};
  }
  return node_.guarded([&] {
    Status status = serve();
    return status.ok() ? status : node_.fail(status);
  });
}

Result<EpochStep> EpochOptimizer::Run::step_by_parts(double loss) {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  require_none_pending();
  if (const std::size_t given = given_.elements(); given != parameters_.size()) {
    refuse(
        "gradient", fmt::format("{} elements", given),
        fmt::format("the parameters have {}, and each is to be in one part", parameters_.size()));
  }
  if (misses_) {
    Status status = take_part();
    return status.ok() ? leave_out() : Result<EpochStep>(status);
  }
  given_.clear();
  return offered(member_->offer(now()), loss);
}

Result<EpochStep> EpochOptimizer::Run::local_step(std::span<const float> gradient, double loss) {
  if (!member_->is_late()) {
    if (Status status = local_->take(round_, gradient, loss); !status.ok()) {
      return local_->spoilt() ? node_.fail(status) : status;
    }
  }
  // One that is late learns it at once: its own steps since the run's last one are lost.
  if (local_->due() || member_->is_late()) {
    return offer(local_->movement(), local_->loss());
  }
  if (Status status = await([] { return true; }); !status.ok()) {
    return status;
  }
  return EpochStep{.round = round_, .local = true};
}

Result<EpochStep> EpochOptimizer::Run::wait() {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  if (!pending_) {
    throw Error("gradient", "none is pending: give one to step()");
  }
  return outcome();
}

// -- the end --------------------------------------------------------------------------------------

void EpochOptimizer::Run::evaluated(const Evaluation& quality) {
  const Visit visit(node_);
  reporter_.evaluated(parts(), round_, quality);
}

Status EpochOptimizer::Run::finish() {
  const bool told = node_.stopped();  // before the lock: what comes later cuts the wait
  const Visit visit(node_);
  if (node_.finished() || !node_.status().ok()) {
    return node_.status();
  }
  const auto end = Clock::now() + options_.roster.leave_patience;
  keep_parameters(false);
  leaves_ = true;
  if (links_ && member_) {
    roster_->leave();
    member_->leave(now());
    while (Clock::now() < end && member_->standing() != EpochStanding::left &&
           !cancelled_.exchange(false) && !node_.hurried() && (told || !node_.stopped())) {
      if (Status status = pump(kLook); !status.ok()) {
        return status;
      }
      round_ = member_->applied();
    }
    tell_what_is_lost();
  }
  keep_state(true);
  if (Status status = note_end(); !status.ok()) {
    return node_.fail(status);
  }
  if (local_) {
    local_->begin();
  }
  node_.finish();
  node_.time().wall_s = seconds_since(began_);
  if (node_.rounds_are_over(round_)) {
    reporter_.enter(SitePhase::done);
  }
  reporter_.refresh(parts());
  close();
  return {};
}

void EpochOptimizer::Run::tell_what_is_lost() const {
  const EpochStanding standing = member_->standing();
  const bool goes = standing == EpochStanding::member || standing == EpochStanding::leaving;
  if (!goes || member_->members().size() < 2) {
    return;
  }
  reporter_.tell(
      Level::warning, SiteEvent::Kind::undelivered,
      fmt::format("leaves before the others have let it go: {}those that stay miss it as one that "
                  "has died, and what it alone has of step {} is lost",
                  pending_ ? "its latest gradient may be in no mean, " : "", round_ + 1));
}

Status EpochOptimizer::Run::note_end() {
  const bool all_left =
      member_ && member_->standing() == EpochStanding::left && member_->run_is_over();
  if (all_left) {
    roster_->note_end();
  }
  const bool over = all_left || node_.rounds_are_over(round_);
  SeedStore* const store = roster_ ? roster_->store() : nullptr;
  if (over && store != nullptr && member_) {
    store->note_end(member_->history(), {.steps = round_, .all_left = all_left});
  }
  return over ? votes_.note({.steps = round_, .all_left = all_left}) : Status();
}

SiteResult EpochOptimizer::Run::result() const {
  const auto lock = node_.pause();
  SiteResult result =
      site_result(reporter_.report(), reporter_.history(), node_.time(), parameters_);
  result.stopped = node_.stopped() && !node_.rounds_are_over(round_);
  if (!node_.finished()) {
    result.time.wall_s = seconds_since(began_);
  }
  return result;
}

EpochOptimizer::EpochOptimizer(const EpochOptions& options, std::span<float> parameters,
                               const ParameterLayout& layout, SiteListener listener)
    : run_(std::make_unique<Run>(options, parameters, layout, std::move(listener))) {}
EpochOptimizer::~EpochOptimizer() = default;

Status EpochOptimizer::connect() { return run_->connect(); }
Result<EpochStep> EpochOptimizer::step(std::span<const float> gradient, double loss) {
  return run_->step(gradient, loss);
}
bool EpochOptimizer::takes_parts() const { return run_->takes_parts(); }
Status EpochOptimizer::gradient_part(std::size_t first, std::span<const float> part) {
  return run_->gradient_part(first, part);
}
Result<EpochStep> EpochOptimizer::step_by_parts(double loss) { return run_->step_by_parts(loss); }
Result<EpochStep> EpochOptimizer::wait() { return run_->wait(); }
void EpochOptimizer::cancel() { run_->cancel(); }
void EpochOptimizer::evaluated(const Evaluation& quality) { run_->evaluated(quality); }
Status EpochOptimizer::finish() { return run_->finish(); }
bool EpochOptimizer::over() const { return run_->over(); }
Round EpochOptimizer::round() const { return run_->round(); }
Round EpochOptimizer::next_step() const { return run_->next_step(); }
SiteReport EpochOptimizer::report() const { return run_->report(); }
SiteResult EpochOptimizer::result() const { return run_->result(); }

}  // namespace sotto
