#include <sotto/sites/process/site_optimizer.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/sites/core/conduct/patience.h>
#include <sotto/sites/nodes/called_node.h>
#include <sotto/sites/nodes/incarnation.h>
#include <sotto/sites/nodes/run_roster.h>
#include <sotto/sites/nodes/state/site_folder.h>
#include <sotto/sites/process/report/site_reporter.h>
#include <sotto/sites/process/site_connections.h>
#include <sotto/sites/process/site_gradients.h>
#include <sotto/sites/process/site_guard.h>
#include <sotto/sites/process/site_joining.h>
#include <sotto/sites/process/site_leaving.h>
#include <sotto/sites/process/site_of_options.h>
#include <sotto/sites/process/site_pace.h>
#include <sotto/sites/process/state/site_loading.h>
#include <sotto/sites/process/state/site_state_writer.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;
using Level = SiteEvent::Level;
using namespace std::chrono_literals;

/// The site looks this often whether it should stop, and how long it has waited.
constexpr auto kSlice = 50ms;
/// While the caller is away, peers are looked after this often.
constexpr auto kServeEvery = 10ms;

}  // namespace

class SiteOptimizer::Run {
 public:
  Run(SiteOptions options, std::unique_ptr<SiteFolder> folder, std::span<float> parameters,
      const ParameterLayout& layout, SiteListener listener);

  Status connect();
  Result<SiteStep> step(std::span<const float> gradient, double loss);
  Result<SiteStep> relay();
  void evaluated(const Evaluation& quality);
  Status finish();
  Status leave();

  bool trains() const { return !options_.only_takes && !gradients_.spent(); }
  bool over() const { return node_.over(site_.round()); }
  Round round() const { return site_.round(); }
  Round next_step() const { return site_.round() * options_.communication_interval + steps_; }
  SiteReport report() const { return reporter_.report(); }
  SiteResult result() const;

 private:
  using Visit = CalledNode::Visit;

  SiteOptions with_defaults(SiteOptions options, std::span<const float> parameters) const;
  std::optional<PrivacyOptions> with_ledger(std::optional<PrivacyOptions> privacy) const;
  sites::SiteSetup setup();

  /// Looks after the peers while a write is awaited; a fault comes again.
  void serve_meanwhile();
  /// Looks after the peers while the caller is away.
  Status serve();
  void report_failure();
  void tell_failure(const Status& fault) const;
  Status begin();
  /// What comes before the site has a model: its state, the other nodes, the channels.
  Status open();
  Status load();
  Status join();
  Result<SiteStep> take(std::span<const float> gradient, std::optional<double> loss);
  Result<SiteStep> exchange();
  Status run_round();
  Status commit();
  Status keep_and_send();
  /// Gives what the site holds to another, as it leaves.
  Status hand_over();
  Status wait_for_peers(sites::Patience& patience);
  /// A step failed like this: dropped if parcels were the reason, and the model is put back.
  Result<SiteStep> put_back(const Status& status);

  /// What is left to be done when no round is under way.
  Status end();
  Status pump(Clock::duration longest);
  SitePhase busy_phase() const { return trains() ? SitePhase::training : SitePhase::relaying; }
  bool rounds_are_over() const { return node_.rounds_are_over(site_.round()); }

  const SiteOptions options_;
  const SiteListener listener_;
  const std::span<float> parameters_;  ///< the caller's
  const ParameterLayout layout_;
  const std::unique_ptr<SiteFolder> folder_;  ///< null: it keeps no state
  SiteGradients gradients_;
  const std::string settings_;
  sites::Site site_;
  SiteGuard guard_;
  sites::Patience patience_;
  sites::Patience answers_;  ///< to what a secure sum needs
  SiteReporter reporter_;
  SiteConnections connections_;

  bool begun_ = false;     ///< there is a model to train
  bool leaving_ = false;   ///< the site ends before the others
  bool disowned_ = false;  ///< what was loaded is not what others know last, and it begins anew
  Round steps_ = 0;        ///< in this round
  Clock::time_point round_began_ = Clock::now();
  SitePace pace_;
  std::uint64_t resets_ = 0;
  SiteStateWriter writer_;
  mutable CalledNode node_;  ///< last: it uses all members above
};

SiteOptimizer::Run::Run(SiteOptions options, std::unique_ptr<SiteFolder> folder,
                        std::span<float> parameters, const ParameterLayout& layout,
                        SiteListener listener)
    : options_(with_defaults(std::move(options), parameters)),
      listener_(heard_listener(std::move(listener), options_.roster.has_value())),
      parameters_(parameters),
      layout_(complete_layout(layout, parameters.size())),
      folder_(std::move(folder)),
      gradients_(parameters.size(), with_ledger(options_.privacy)),
      settings_(settings_text(shared_settings(options_, layout_))),
      site_(setup()),
      guard_(site_, listener_),
      patience_(std::chrono::duration<double>(options_.patience).count()),
      answers_(patience_),
      reporter_({.options = options_,
                 .settings = settings_,
                 .layout = layout_,
                 .site = site_,
                 .gradients = gradients_,
                 .guard = guard_,
                 .patience = patience_,
                 .folder = folder_.get()},
                listener_),
      connections_({.options = options_,
                    .settings = settings_,
                    .site = site_,
                    .reporter = reporter_,
                    .listener = listener_}),
      pace_(options_),
      writer_({.options = options_,
               .settings = settings_,
               .site = site_,
               .gradients = gradients_,
               .folder = folder_.get()},
              [this] { serve_meanwhile(); }),
      node_({.noun = "site",
             .stop = options_.stop,
             .haste = options_.haste,
             .rounds = options_.rounds,
             .serve_every = kServeEvery,
             .serve = [this] { return serve(); },
             .computes = [this] { return begun_; },
             .fail = [this] { report_failure(); },
             .tell = [this](const Status& fault) { tell_failure(fault); }}) {
  if (options_.roster && folder_) {
    throw Error("state",
                "a run whose nodes come and go keeps none: a node that is started again "
                "is a newcomer; leave it out");
  }
  if (options_.save_every > 1 && !folder_) {
    throw Error("save_every", options_.roster
                                  ? "a run whose nodes come and go saves nothing: leave it out"
                                  : "there is no folder to save to: give `state`, or leave it out");
  }
  site_.plan_steps(pace_.steps());
  reporter_.refresh(true);
}

SiteOptions SiteOptimizer::Run::with_defaults(SiteOptions options,
                                              std::span<const float> parameters) const {
  if (!options.init) {
    options.init = model_digest(parameters);
  }
  return options.roster ? with_roster(std::move(options)) : options;
}

std::optional<PrivacyOptions> SiteOptimizer::Run::with_ledger(
    std::optional<PrivacyOptions> privacy) const {
  if (privacy && !folder_) {
    throw Error("state", "noise hides nothing if what is spent is forgotten: give it a folder");
  }
  if (privacy) {
    privacy->ledger = folder_->privacy_ledger();
  }
  return privacy;
}

sites::SiteSetup SiteOptimizer::Run::setup() {
  sites::SiteSetup setup = site_setup(options_, layout_, parameters_);
  setup.incarnation = draw_incarnation();
  setup.secret = draw_secret();
  setup.life = folder_ ? folder_->life() : SiteFolder::life_by_clock();
  return setup;
}

void SiteOptimizer::Run::report_failure() {
  connections_.close();
  reporter_.enter(SitePhase::failed);
  reporter_.refresh(true);
}

void SiteOptimizer::Run::tell_failure(const Status& fault) const {
  const bool replaced = !site_.alive().ok();
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
  const auto disowned = load_site({.name = options_.name,
                                   .settings = settings_,
                                   .folder = folder_.get(),
                                   .site = site_,
                                   .gradients = gradients_,
                                   .writer = writer_,
                                   .reporter = reporter_});
  if (!disowned.ok()) {
    return disowned.status();
  }
  disowned_ = *disowned;
  resets_ = site_.state().resets + (disowned_ ? 1 : 0);  // no peer is the reason
  return {};
}

Status SiteOptimizer::Run::pump(Clock::duration longest) {
  Status status = connections_.pump(Deadline::after(longest));
  if (const auto resets = site_.state().resets; resets != resets_) {
    resets_ = resets;
    reporter_.tell(
        Level::warning, SiteEvent::Kind::state_given_up,
        "a peer knows more of this site than its state does: it starts from a neighbour's model");
  }
  reporter_.refresh(false);
  return status;
}

Status SiteOptimizer::Run::join() {
  return join_sites({.options = options_,
                     .site = site_,
                     .writer = writer_,
                     .reporter = reporter_,
                     .links = connections_.links(),
                     .disowned = disowned_,
                     .pump = [this](Clock::duration span) { return pump(span); },
                     .stopped = [this] { return node_.stopped(); }});
}

Status SiteOptimizer::Run::open() {
  if (connections_.is_open()) {
    return {};
  }
  Status status = load();
  if (status.ok()) {
    status = connections_.find_nodes();
  }
  return status.ok() ? connections_.open() : status;
}

Status SiteOptimizer::Run::begin() {
  if (begun_ && site_.try_begin(false)) {
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
    begun_ = site_.try_begin(false);
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
  if (gradient.size() != parameters_.size()) {
    refuse("gradient", fmt::format("{} elements", gradient.size()),
           fmt::format("there are {} parameters", parameters_.size()));
  }
  const Visit visit(node_);
  if (const Status& fault = node_.usable(); !fault.ok()) {
    return fault;
  }
  if (options_.only_takes) {
    throw Error("an observer takes no step: relay() takes in what comes");
  }
  if (!begun_ || !site_.try_begin(false)) {
    const std::vector<float> before(parameters_.begin(), parameters_.end());
    if (Status status = begin(); !status.ok()) {
      return status;
    }
    if (!std::ranges::equal(parameters_, before)) {
      return SiteStep{.round = site_.round(), .dropped = true};
    }
  }
  return take(gradient, std::isnan(loss) ? std::nullopt : std::optional(loss));
}

Result<SiteStep> SiteOptimizer::Run::take(std::span<const float> gradient,
                                          std::optional<double> loss) {
  if (gradients_.spent()) {
    reporter_.tell_of_budget();
    return Status(Fault::budget,
                  "the privacy budget is spent: from now on the site can only pass "
                  "on what others make");
  }
  reporter_.tell_of_round();
  const auto start = Clock::now();
  const auto released = gradients_.release(gradient, loss);
  if (!released.ok()) {
    return put_back(released.status());
  }
  if (steps_ == 0) {
    guard_.look_at(gradients_.loss());
  }
  if (Status status = site_.step(*released); !status.ok()) {
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
  return SiteStep{.round = site_.round()};
}

Result<SiteStep> SiteOptimizer::Run::put_back(const Status& status) {
  if (!guard_.put_back(status)) {
    return status;
  }
  steps_ = 0;
  return SiteStep{.round = site_.round(), .dropped = true};
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
  if (Status status = commit(); !status.ok()) {
    return status;
  }
  reporter_.enter(trains() ? SitePhase::waiting : SitePhase::relaying);
  const double before_s = node_.time().wait_s;
  if (Status status = wait_for_peers(patience_); !status.ok()) {
    return status;
  }
  const auto now = Clock::now();
  site_.note_time({.lasted = std::chrono::duration<double>(now - round_began_).count(),
                   .waited = node_.time().wait_s - before_s});
  round_began_ = now;
  if (pace_.adapts()) {
    pace_.end_round(connections_.monitor().reports(), site_.round());
  }
  if (site_.ask_for_sum()) {
    if (Status status = wait_for_peers(answers_); !status.ok()) {
      return status;
    }
  }
  if (Status status = site_.collect(); !status.ok()) {
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
  site_.plan_steps(pace_.steps());
  begun_ = site_.try_begin(false);
  reporter_.enter(busy_phase());
  reporter_.round_done();
  return SiteStep{.round = site_.round(), .exchanged = true};
}

Status SiteOptimizer::Run::commit() {
  Status status = site_.offer();
  return status.ok() ? keep_and_send() : status;
}

Status SiteOptimizer::Run::keep_and_send() {
  if (writer_.beside()) {  // no parcel waits for the state, which is copied while parcels travel
    connections_.links().send();
    return writer_.keep();
  }
  if (Status status = writer_.keep(); !status.ok()) {
    return status;
  }
  connections_.links().send();
  return {};
}

Status SiteOptimizer::Run::wait_for_peers(sites::Patience& patience) {
  const auto start = Clock::now();
  Status status = pump(0ms);
  const auto heard = std::ranges::count_if(
      site_.peers(), [](const sites::PeerState& peer) { return peer.heard && peer.waited_for; });
  patience.begin(0, site_.awaited(), static_cast<std::size_t>(heard));
  const std::chrono::duration<double> longest(patience.lasts());
  while (status.ok() && !node_.stopped() && !site_.complete() && Clock::now() - start < longest) {
    status = pump(std::min<Clock::duration>(kSlice, options_.patience));
    patience.look(seconds_since(start), site_.awaited());
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
  return leave_run({.site = site_,
                    .roster = *connections_.roster(),
                    .gives_all = options_.exchange == sites::MixingKind::push_sum,
                    .reporter = reporter_,
                    .commit = [this] { return keep_and_send(); },
                    .pump = [this](Clock::duration span) { return pump(span); },
                    .cut = [this, told] { return node_.hurried() || (!told && node_.stopped()); }});
}

Status SiteOptimizer::Run::end() {
  reporter_.tell_of_round();
  if (Status status = writer_.save(true); !status.ok()) {
    return status;
  }
  if (Status status = gradients_.settle(); !status.ok()) {
    return status;
  }
  reporter_.export_model();
  reporter_.tell(Level::info, SiteEvent::Kind::ended,
                 fmt::format("{} {}{}",
                             rounds_are_over() ? "its rounds are over,"
                             : node_.stopped() ? "was told to stop at round"
                                               : "ends at round",
                             site_.round(), reporter_.history().text()),
                 reporter_.history().with_figures({}));
  return {};
}

SiteResult SiteOptimizer::Run::result() const {
  const auto lock = node_.pause();
  SiteResult result = site_result(node_.finished() ? reporter_.report() : reporter_.present(),
                                  reporter_.history(), node_.time(), parameters_);
  result.stopped = !rounds_are_over();
  result.save_s = writer_.seconds();
  result.export_trouble = reporter_.export_trouble();
  return result;
}

SiteOptimizer::SiteOptimizer(const SiteOptions& options, std::unique_ptr<SiteFolder> folder,
                             std::span<float> parameters, const ParameterLayout& layout,
                             SiteListener listener)
    : run_(std::make_unique<Run>(options, std::move(folder), parameters, layout,
                                 std::move(listener))) {}
SiteOptimizer::SiteOptimizer(const SiteOptions& options, const std::string& state,
                             std::span<float> parameters, const ParameterLayout& layout,
                             SiteListener listener)
    : SiteOptimizer(options, state.empty() ? nullptr : std::make_unique<SiteFolder>(state),
                    parameters, layout, std::move(listener)) {}
SiteOptimizer::~SiteOptimizer() = default;

Status SiteOptimizer::connect() { return run_->connect(); }
Result<SiteStep> SiteOptimizer::step(std::span<const float> gradient, double loss) {
  return run_->step(gradient, loss);
}
Result<SiteStep> SiteOptimizer::relay() { return run_->relay(); }
void SiteOptimizer::evaluated(const Evaluation& quality) { run_->evaluated(quality); }
Status SiteOptimizer::finish() { return run_->finish(); }
Status SiteOptimizer::leave() { return run_->leave(); }
bool SiteOptimizer::trains() const { return run_->trains(); }
bool SiteOptimizer::over() const { return run_->over(); }
Round SiteOptimizer::round() const { return run_->round(); }
Round SiteOptimizer::next_step() const { return run_->next_step(); }
SiteReport SiteOptimizer::report() const { return run_->report(); }
SiteResult SiteOptimizer::result() const { return run_->result(); }

}  // namespace sotto
