#include "elastic_optimizer_run.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/sites/elastic/elastic_assembly.h>

namespace sotto {
namespace {

using namespace std::chrono_literals;
using sites::EpochStanding;
using Level = SiteEvent::Level;

/// A wait looks this often whether it is to end.
constexpr auto kLook = 20ms;
/// While the caller is away, the others are answered this often.
constexpr auto kAnswerEvery = 5ms;

}  // namespace

ElasticOptimizer::Run::Run(const ElasticOptions& options, std::span<float> parameters,
                           const ParameterLayout& layout, SiteListener listener)
    : options_(options),
      parameters_(parameters),
      layout_(complete_layout(layout, parameters.size())),
      listener_(heard(std::move(listener))),
      settings_(settings_text(agreed_settings(options_, layout_))),
      votes_(options_.state, options_.name),
      connections_(
          options_, settings_, parameters.size(), votes_, [this] { return now(); }, listener_),
      view_(options_),
      reporter_(options_, settings_, parameters.size(), connections_, listener_),
      local_(make_local_steps(options_, parameters_, layout_)),
      entry_({.options = options_,
              .parameters = parameters_,
              .layout = layout_,
              .votes = votes_,
              .local = local_ ? &*local_ : nullptr,
              .owed = owed_,
              .connections = connections_,
              .reporter = reporter_,
              .clock = [this] { return now(); }}),
      node_({.noun = "node",
             .stop = options_.stop,
             .haste = options_.haste,
             .rounds = options_.rounds,
             .serve_every = kAnswerEvery,
             .serve = [this] { return serve(); },
             .computes = [this] { return member() != nullptr && !owed_.pending(); },
             .fail = [this] { report_failure(); },
             .tell =
                 [this](const Status& fault) {
                   reporter_.tell(Level::error, SiteEvent::Kind::failed, fault.message());
                 }}) {}

void ElasticOptimizer::Run::report_failure() {
  connections_.close();
  reporter_.enter(SitePhase::failed);
  reporter_.refresh(member());
}

// -- meeting the others ---------------------------------------------------------------------------

Status ElasticOptimizer::Run::open() {
  if (connections_.is_open()) {
    return {};
  }
  reporter_.enter(SitePhase::joining);
  view_.begin_search(now());
  Status status = connections_.open();
  if (status.ok()) {
    reporter_.tell(Level::info, SiteEvent::Kind::listening, connections_.address());
    entry_.tell();
  }
  return status;
}

NodeSight ElasticOptimizer::Run::sight() const {
  return {view_.sight(now()), entry_.founded(), entry_.is_empty()};
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

// -- waiting --------------------------------------------------------------------------------------

void ElasticOptimizer::Run::follow_roster() {
  for (SiteEvent& event : connections_.roster().news()) {
    event.round = round_;
    listener_(event);
  }
  if (!view_.is_due(now())) {
    return;
  }
  RunRoster& roster = connections_.roster();
  const sites::RosterView view = roster.view();
  view_.take(view, roster.has_first_seed());
  entry_.note_membership();
  roster.set_waiting(!entry_.took_part());
  connections_.links().set_nodes(known_nodes(view, options_.name));
}

Status ElasticOptimizer::Run::pump_once(Clock::duration longest) {
  follow_roster();
  Status status = connections_.roster().standing();
  if (status.ok()) {
    status = entry_.goes_on(view_.sight(now()));
  }
  if (!status.ok()) {
    return status;
  }
  status = entry_.follow(sight());
  if (!status.ok()) {
    return status;
  }
  status = connections_.links().pump(Deadline::after(longest), member());
  if (status.ok() && member() != nullptr) {
    status = member()->fault();
  }
  if (status.ok() && member() != nullptr) {
    status = entry_.keep_or_yield();
  }
  if (member() != nullptr) {
    entry_.go_on_writing();
    reporter_.note(member()->take_left_out());
    if (const auto unequal = member()->take_unequal()) {
      reporter_.note(*unequal);
    }
  }
  reporter_.follow(member(), sight());
  pumped_ = Clock::now();
  return status;
}

Status ElasticOptimizer::Run::pump(Clock::duration longest) {
  return node_.guarded([&] {
    Status status = pump_once(longest);
    return status.ok() ? status : node_.fail(status);
  });
}

Status ElasticOptimizer::Run::await(const std::function<bool()>& done) {
  const auto start = Clock::now();
  entry_.keep_parameters(false);
  while (true) {
    round_ = member() != nullptr ? member()->applied() : round_;
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
                          words_of(reporter_.wait_now(member(), sight())))};
    }
    if (Status status = pump(ready ? 0ms : kLook); !status.ok()) {
      return status;
    }
  }
}

Status ElasticOptimizer::Run::serve() {
  if (!connections_.is_open()) {
    return {};
  }
  entry_.keep_parameters(true);  // they are the caller's between two calls
  return pump_once(0ms);
}

// -- steps ----------------------------------------------------------------------------------------

Result<ElasticStep> ElasticOptimizer::Run::outcome() {
  const auto start = Clock::now();
  reporter_.enter(SitePhase::waiting);
  Status status = await([this] {
    if (member() != nullptr && !owed_.known()) {
      owed_.note(member()->outcome());
    }
    return owed_.known() && (takes_part() || node_.rounds_are_over(round_));
  });
  node_.time().wait_s += seconds_since(start);
  // A step that is made is told, also where the wait for the next one is cut short.
  const bool cut_short = status.fault() == Fault::deadline || status.fault() == Fault::stopped;
  if (!status.ok() && !(cut_short && owed_.known())) {
    return status;
  }
  if (local_) {
    local_->begin();
  }
  if (member() != nullptr) {
    entry_.write(false);
  }
  reporter_.enter(SitePhase::training);
  const OwedStep::Made made = owed_.take();
  reporter_.step_done(made.loss, made.left_out);
  return ElasticStep{.round = round_, .left_out = made.left_out};
}

Status ElasticOptimizer::Run::take_part_with_gradient() {
  if (takes_part()) {
    return {};
  }
  const std::vector<float> before(parameters_.begin(), parameters_.end());
  const Round then = round_;
  // A wait that ends early may have moved them, and the caller comes again with that gradient.
  Status status = take_part();
  if (round_ != then || !std::ranges::equal(before, parameters_)) {
    owed_.miss();
  }
  return status;
}

ElasticStep ElasticOptimizer::Run::leave_out() {
  owed_.leave_out();
  return {.round = round_, .left_out = true};
}

Result<ElasticStep> ElasticOptimizer::Run::step(std::span<const float> gradient, double loss) {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  owed_.require_none_pending();
  owed_.require_no_parts();
  if (gradient.size() != parameters_.size()) {
    refuse("gradient", fmt::format("{} elements", gradient.size()),
           fmt::format("it must have those of the parameters, {}", parameters_.size()));
  }
  if (Status status = take_part_with_gradient(); !status.ok()) {
    return status;
  }
  if (owed_.misses()) {
    return leave_out();
  }
  return local_ ? local_step(gradient, loss) : offer(gradient, loss);
}

Result<ElasticStep> ElasticOptimizer::Run::offer(std::span<const float> gradient, double loss) {
  return offered(member()->offer(gradient, now()), loss);
}

Result<ElasticStep> ElasticOptimizer::Run::offered(const Status& taken, double loss) {
  if (!taken.ok()) {
    return refusal(taken);
  }
  owed_.give(loss);
  return outcome();
}

Status ElasticOptimizer::Run::refusal(const Status& status) {
  return status.fault() == Fault::non_finite && member()->fault().ok() ? status
                                                                       : node_.fail(status);
}

Status ElasticOptimizer::Run::gradient_part(std::size_t first, std::span<const float> part) {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  owed_.require_none_pending();
  if (local_) {
    refuse("gradient_part", fmt::format("{} elements from {} on", part.size(), first),
           "with local steps a node sends what they have come to, and no gradient");
  }
  owed_.require_part(first, part.size(), parameters_.size());
  if (part.empty()) {
    return {};
  }
  if (owed_.empty()) {
    if (Status status = take_part_with_gradient(); !status.ok()) {
      return status;
    }
  }
  if (!owed_.misses()) {
    if (Status status = member()->gradient_part(first, part, now()); !status.ok()) {
      return refusal(status);
    }
  }
  owed_.add_part(first, part.size());
  if (!(member() != nullptr && member()->has_parcels()) && Clock::now() - pumped_ < kAnswerEvery) {
    return {};
  }
  return node_.guarded([&] {
    Status status = serve();
    return status.ok() ? status : node_.fail(status);
  });
}

Result<ElasticStep> ElasticOptimizer::Run::step_by_parts(double loss) {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  owed_.require_none_pending();
  owed_.require_all_parts(parameters_.size());
  if (owed_.misses()) {
    Status status = take_part();
    return status.ok() ? leave_out() : Result<ElasticStep>(status);
  }
  owed_.end_parts();
  return offered(member()->offer(now()), loss);
}

Result<ElasticStep> ElasticOptimizer::Run::local_step(std::span<const float> gradient,
                                                      double loss) {
  if (!member()->is_late()) {
    if (Status status = local_->take(round_, gradient, loss); !status.ok()) {
      return local_->spoilt() ? node_.fail(status) : status;
    }
  }
  // One that is late learns it at once: its own steps since the run's last one are lost.
  if (local_->due() || member()->is_late()) {
    return offer(local_->movement(), local_->loss());
  }
  if (Status status = await([] { return true; }); !status.ok()) {
    return status;
  }
  return ElasticStep{.round = round_, .local = true};
}

Result<ElasticStep> ElasticOptimizer::Run::wait() {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  owed_.require_pending();
  return outcome();
}

// -- the end --------------------------------------------------------------------------------------

void ElasticOptimizer::Run::evaluated(const Evaluation& quality) {
  const Visit visit(node_);
  reporter_.evaluated(member(), round_, quality);
}

Status ElasticOptimizer::Run::finish() {
  const bool told = node_.stopped();  // before the lock: what comes later cuts the wait
  const Visit visit(node_);
  if (node_.finished() || !node_.status().ok()) {
    return node_.status();
  }
  const auto end = Clock::now() + options_.roster.leave_patience;
  entry_.keep_parameters(false);
  entry_.leave();
  if (connections_.is_open() && member() != nullptr) {
    connections_.roster().leave();
    member()->leave(now());
    while (Clock::now() < end && member()->standing() != EpochStanding::left &&
           !cancelled_.exchange(false) && !node_.hurried() && (told || !node_.stopped())) {
      if (Status status = pump(kLook); !status.ok()) {
        return status;
      }
      round_ = member()->applied();
    }
    tell_what_is_lost();
  }
  entry_.write(true);
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
  reporter_.refresh(member());
  connections_.close();
  return {};
}

void ElasticOptimizer::Run::tell_what_is_lost() const {
  const sites::EpochMember& member = *entry_.member();
  const bool goes =
      member.standing() == EpochStanding::member || member.standing() == EpochStanding::leaving;
  if (!goes || member.members().size() < 2) {
    return;
  }
  reporter_.tell(
      Level::warning, SiteEvent::Kind::undelivered,
      fmt::format("leaves before the others have let it go: {}those that stay miss it as one that "
                  "has died, and what it alone has of step {} is lost",
                  owed_.pending() ? "its latest gradient may be in no mean, " : "", round_ + 1));
}

Status ElasticOptimizer::Run::note_end() {
  const bool all_left =
      member() != nullptr && member()->standing() == EpochStanding::left && member()->run_is_over();
  if (all_left) {
    connections_.roster().note_end();
  }
  const bool over = all_left || node_.rounds_are_over(round_);
  return over ? entry_.note_end({.steps = round_, .all_left = all_left}) : Status();
}

SiteResult ElasticOptimizer::Run::result() const {
  const auto lock = node_.pause();
  SiteResult result =
      site_result(reporter_.report(), reporter_.history(), node_.time(), parameters_);
  result.stopped = node_.stopped() && !node_.rounds_are_over(round_);
  if (!node_.finished()) {
    result.time.wall_s = seconds_since(began_);
  }
  return result;
}

}  // namespace sotto
