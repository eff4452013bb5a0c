#include "site_optimizer_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/sites/process/site_joining.h>
#include <sotto/sites/process/site_leaving.h>
#include <sotto/sites/process/state/site_loading.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;
using namespace std::chrono_literals;

/// The site looks this often whether it should stop, and how long it has waited.
constexpr auto kSlice = 50ms;
/// While the caller is away, peers are looked after this often.
constexpr auto kServeEvery = 10ms;

}  // namespace

SiteOptimizer::Run::Run(const SiteOptions& options, std::unique_ptr<SiteFolder> folder,
                        std::span<float> parameters, const ParameterLayout& layout,
                        SiteListener listener)
    : parts_(options, std::move(folder), parameters, layout),
      teller_(parts_.site, heard_listener(std::move(listener), parts_.options.roster.has_value())),
      guard_(parts_.site, teller_),
      patience_(std::chrono::duration<double>(parts_.options.patience).count()),
      answers_(patience_),
      connections_(parts_, teller_),
      reporter_(parts_, connections_, guard_, patience_, teller_),
      pace_(parts_.options),
      writer_(parts_, [this] { serve_meanwhile(); }),
      node_({.noun = "site",
             .stop = parts_.options.stop,
             .haste = parts_.options.haste,
             .rounds = parts_.options.rounds,
             .serve_every = kServeEvery,
             .serve = [this] { return serve(); },
             .computes = [this] { return begun_; },
             .fail = [this] { report_failure(); },
             .tell = [this](const Status& fault) { tell_failure(fault); }}) {
  parts_.site.plan_steps(pace_.steps());
  reporter_.refresh(true);
}

void SiteOptimizer::Run::report_failure() {
  connections_.close();
  reporter_.enter(SitePhase::failed);
  reporter_.refresh(true);
}

void SiteOptimizer::Run::tell_failure(const Status& fault) const {
  const bool replaced = !parts_.site.alive().ok();
  reporter_.tell(Level::error, replaced ? SiteEvent::Kind::newer_process : SiteEvent::Kind::failed,
                 fault.message());
}

void SiteOptimizer::Run::serve_meanwhile() {
  if (connections_.is_open()) {
    (void)connections_.carry(Deadline::after(0ms));
  }
}

Status SiteOptimizer::Run::serve() {
  if (!begun_ || !connections_.is_open()) {
    return {};  // a site that waits for a model would take one, and the parameters are the caller's
  }
  return pump(0ms);
}

Status SiteOptimizer::Run::load() {
  if (connections_.roster() != nullptr) {
    return {};  // a call before this one has come so far
  }
  const auto disowned = load_site(parts_, writer_, reporter_);
  if (!disowned.ok()) {
    return disowned.status();
  }
  disowned_ = *disowned;
  return {};
}

Status SiteOptimizer::Run::pump(Clock::duration longest) {
  Status status = connections_.pump(Deadline::after(longest));
  reporter_.refresh(false);
  return status;
}

Status SiteOptimizer::Run::join() {
  return join_sites({.parts = parts_,
                     .writer = writer_,
                     .connections = connections_,
                     .reporter = reporter_,
                     .disowned = disowned_,
                     .stopped = [this] { return node_.stopped(); }});
}

Status SiteOptimizer::Run::open() {
  if (connections_.is_open()) {
    return {};
  }
  Status status = load();
  if (status.ok() && parts_.options.roster) {
    reporter_.enter(SitePhase::joining);
    status = connections_.find_nodes([this] { reporter_.refresh(false); });
  }
  return status.ok() ? connections_.open(disowned_) : status;
}

Status SiteOptimizer::Run::begin() {
  if (begun_ && parts_.site.try_begin(false)) {
    return {};
  }
  begun_ = false;
  return node_.guarded([&]() -> Status {
    if (Status status = open(); !status.ok()) {
      return status.fault() == Fault::stopped ? status : node_.fail(status);
    }
    if (Status status = join(); !status.ok()) {
      return node_.fail(status);
    }
    begun_ = parts_.site.try_begin(false);
    disowned_ = disowned_ && !begun_;
    pace_.begin_round();
    reporter_.enter(busy_phase());
    return begun_ ? Status() : Status(Fault::stopped, "was told to stop before it had a model");
  });
}

Status SiteOptimizer::Run::connect() {
  const Visit visit(node_);
  const Status& fault = node_.usable();
  return fault.ok() ? begin() : fault;
}

Result<SiteStep> SiteOptimizer::Run::step(std::span<const float> gradient, double loss) {
  const std::span<const float> parameters = parts_.site.parameters();
  if (gradient.size() != parameters.size()) {
    refuse("gradient", fmt::format("{} elements", gradient.size()),
           fmt::format("there are {} parameters", parameters.size()));
  }
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  if (parts_.options.only_takes) {
    throw Error("an observer takes no step: relay() takes in what comes");
  }
  if (!begun_ || !parts_.site.try_begin(false)) {
    const std::vector<float> before(parameters.begin(), parameters.end());
    if (Status status = begin(); !status.ok()) {
      return status;
    }
    if (!std::ranges::equal(parameters, before)) {
      return SiteStep{.round = round(), .dropped = true};
    }
  }
  return take(gradient, std::isnan(loss) ? std::nullopt : std::optional(loss));
}

Result<SiteStep> SiteOptimizer::Run::take(std::span<const float> gradient,
                                          std::optional<double> loss) {
  if (parts_.gradients.spent()) {
    reporter_.tell_of_budget();
    return Status(Fault::budget,
                  "the privacy budget is spent: from now on the site can only pass "
                  "on what others make");
  }
  reporter_.tell_of_round();
  const auto start = Clock::now();
  const auto released = parts_.gradients.release(gradient, loss);
  if (!released.ok()) {
    return put_back(released.status());
  }
  if (steps_ == 0) {
    guard_.look_at(parts_.gradients.loss());
  }
  if (Status status = parts_.site.step(*released); !status.ok()) {
    return put_back(status);
  }
  ++steps_;
  node_.time().algorithm_s += seconds_since(start);
  reporter_.tell_of_budget();
  if (steps_ >= pace_.steps()) {
    return exchange();
  }
  if (Status status = node_.guarded([&] { return pump(0ms); }); !status.ok()) {
    return node_.fail(status);
  }
  return SiteStep{.round = round()};
}

Result<SiteStep> SiteOptimizer::Run::put_back(const Status& status) {
  if (!guard_.put_back(status)) {
    return status;
  }
  steps_ = 0;
  return SiteStep{.round = round(), .dropped = true};
}

Result<SiteStep> SiteOptimizer::Run::relay() {
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  if (Status status = begin(); !status.ok()) {
    return status;
  }
  reporter_.tell_of_round();
  return exchange();
}

Status SiteOptimizer::Run::run_round() {
  sites::Site& site = parts_.site;
  if (Status status = site.offer(); !status.ok()) {
    return status;
  }
  if (Status status = connections_.send(writer_); !status.ok()) {
    return status;
  }
  reporter_.enter(trains() ? SitePhase::waiting : SitePhase::relaying);
  const double before_s = node_.time().wait_s;
  if (Status status = wait_for_peers(patience_); !status.ok()) {
    return status;
  }
  const auto now = Clock::now();
  site.note_time({.lasted = std::chrono::duration<double>(now - round_began_).count(),
                  .waited = node_.time().wait_s - before_s});
  round_began_ = now;
  if (pace_.adapts()) {
    pace_.end_round(connections_.peers(), site.round());
  }
  if (site.ask_for_sum()) {
    if (Status status = wait_for_peers(answers_); !status.ok()) {
      return status;
    }
  }
  if (Status status = site.collect(); !status.ok()) {
    return status;
  }
  if (Status status = writer_.save_new_incarnation(); !status.ok()) {
    return status;
  }
  if (Status status = pump(0ms); !status.ok()) {
    return status;
  }
  return over() ? Status() : join();
}

Result<SiteStep> SiteOptimizer::Run::exchange() {
  pace_.end_steps(steps_);
  if (Status status = node_.guarded([&] { return run_round(); }); !status.ok()) {
    return node_.fail(status);
  }
  steps_ = 0;
  pace_.begin_round();
  parts_.site.plan_steps(pace_.steps());
  begun_ = parts_.site.try_begin(false);
  reporter_.enter(busy_phase());
  reporter_.round_done();
  return SiteStep{.round = round(), .exchanged = true};
}

Status SiteOptimizer::Run::wait_for_peers(sites::Patience& patience) {
  const auto start = Clock::now();
  Status status = pump(0ms);
  const auto heard = std::ranges::count_if(parts_.site.peers(), [](const sites::PeerState& peer) {
    return peer.heard && peer.waited_for;
  });
  patience.begin(0, parts_.site.awaited(), static_cast<std::size_t>(heard));
  const std::chrono::duration<double> longest(patience.lasts());
  while (status.ok() && !node_.stopped() && !parts_.site.complete() &&
         Clock::now() - start < longest) {
    status = pump(std::min<Clock::duration>(kSlice, parts_.options.patience));
    patience.look(seconds_since(start), parts_.site.awaited());
  }
  patience.end(seconds_since(start));
  node_.time().wait_s += seconds_since(start);
  return status;
}

void SiteOptimizer::Run::evaluated(const Evaluation& quality) {
  const Visit visit(node_);
  reporter_.evaluated(quality);
}

Status SiteOptimizer::Run::finish() {
  const Visit visit(node_);
  if (!node_.status().ok() || node_.finished()) {
    return node_.status();
  }
  node_.finish();
  if (!connections_.is_open()) {
    connections_.close();
    return {};  // nothing was read, and nothing is to be written over it
  }
  if (steps_ > 0) {  // of a round that is under way
    if (const auto step = exchange(); !step.ok()) {
      return step.status();
    }
  }
  const auto leave_and_end = [&] {
    Status status = leaving_ && connections_.roster() != nullptr ? hand_over() : Status();
    return status.ok() ? end() : status;
  };
  if (Status status = node_.guarded(leave_and_end); !status.ok()) {
    return node_.fail(status);
  }
  node_.time().wall_s = seconds_since(reporter_.began());
  reporter_.enter(SitePhase::done);
  reporter_.refresh(true);
  connections_.close();
  return {};
}

Status SiteOptimizer::Run::leave() {
  leaving_ = true;
  return finish();
}

Status SiteOptimizer::Run::hand_over() {
  const bool told = node_.stopped();
  return leave_run({.parts = parts_,
                    .writer = writer_,
                    .connections = connections_,
                    .reporter = reporter_,
                    .cut = [this, told] { return node_.hurried() || (!told && node_.stopped()); }});
}

Status SiteOptimizer::Run::end() {
  reporter_.tell_of_round();
  if (Status status = writer_.save(true); !status.ok()) {
    return status;
  }
  if (Status status = parts_.gradients.settle(); !status.ok()) {
    return status;
  }
  reporter_.export_model();
  reporter_.tell(Level::info, SiteEvent::Kind::ended,
                 fmt::format("{} {}{}",
                             rounds_are_over() ? "its rounds are over,"
                             : node_.stopped() ? "was told to stop at round"
                                               : "ends at round",
                             round(), reporter_.history().text()),
                 reporter_.history().with_figures({}));
  return {};
}

SiteResult SiteOptimizer::Run::result() const {
  const auto lock = node_.pause();
  SiteResult result = site_result(node_.finished() ? reporter_.report() : reporter_.present(),
                                  reporter_.history(), node_.time(), parts_.site.parameters());
  result.stopped = !rounds_are_over();
  result.save_s = writer_.seconds();
  result.export_trouble = reporter_.export_trouble();
  return result;
}

}  // namespace sotto
