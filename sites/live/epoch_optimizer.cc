#include <sotto/sites/live/epoch_optimizer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/exchange/gradient_parts.h>
#include <sotto/sites/epochs/epoch_local_steps.h>
#include <sotto/sites/live/epoch_links.h>
#include <sotto/sites/live/epoch_reporter.h>
#include <sotto/sites/live/founding_votes.h>
#include <sotto/sites/process/called_node.h>
#include <sotto/sites/process/run_roster.h>
#include <sotto/sites/process/site_of_options.h>

namespace sotto {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using sites::EpochLocalSteps;
using sites::EpochMember;
using sites::EpochStanding;
using sites::EpochTime;
using Level = SiteEvent::Level;

/// A wait looks this often whether it is to end.
constexpr auto kLook = 20ms;
/// While the caller is away, the others are answered this often.
constexpr auto kAnswerEvery = 5ms;
/// The roster is asked this often who is there.
constexpr auto kAskRosterEvery = 50ms;
/// A message has at most so many bytes beside a model or a piece of one: members and digests.
constexpr std::size_t kMostBesides = 64 * 1024;
/// Pieces of a copy that wait for a newcomer, beside two of the longest messages.
constexpr std::size_t kPiecesQueued = 8;

}  // namespace

class EpochOptimizer::Run {
 public:
  Run(const EpochOptions& options, std::span<float> parameters, const ParameterLayout& layout,
      SiteListener listener);
  ~Run() {
    const auto lock = node_.pause();
    close();
  }

  Status connect();
  Result<EpochStep> step(std::span<const float> gradient, double loss);
  bool takes_parts() const { return !local_; }
  Status gradient_part(std::size_t first, std::span<const float> part);
  Result<EpochStep> step_by_parts(double loss);
  Result<EpochStep> wait();
  void cancel() { cancelled_ = true; }
  void evaluated(const Evaluation& quality);
  Status finish();

  bool over() const { return node_.over(round_); }
  Round round() const { return round_; }
  Round next_step() const {
    return local_ ? round_ * local_->interval() + local_->taken() : round_;
  }
  SiteReport report() const { return reporter_.report(); }
  SiteResult result() const;

 private:
  using Visit = CalledNode::Visit;

  EpochTime now() const { return std::chrono::duration_cast<EpochTime>(Clock::now() - began_); }
  EpochNodeParts parts() const {
    return {.member = member_ ? &*member_ : nullptr,
            .channels = channels_.get(),
            .roster = roster_.get(),
            .links = links_ ? &*links_ : nullptr,
            .incarnation = incarnation_,
            .up = up_,
            .founded = !votes_.found().empty(),
            .asked = asked_seeds_};
  }

  Status open();
  bool takes_part() const { return member_ && member_->wants_gradient(); }
  Status take_part();
  /// take_part(), which notes whether it has moved the parameters from under a gradient.
  Status take_part_with_gradient();
  /// The gradient of the caller misses the run's model: it is left out.
  EpochStep leave_out();
  ChannelOptions channel_options() const;
  /// Begins as a newcomer, or as the founder where no run is heard of.
  void try_begin();
  /// The rule by which the caller's gradients make steps.
  std::unique_ptr<StepRule> make_rule() const;
  std::function<std::uint64_t(Round)> step_settings() const;
  std::optional<EpochLocalSteps> make_local_steps() const;
  void make_member(bool founder);
  /// Whether the parameters stay as they are.
  void keep_parameters(bool kept);
  /// Waits until `done` holds, as long as the caller wants to.
  Status await(const std::function<bool()>& done);
  Status pump(Clock::duration longest);
  Status pump_once(Clock::duration longest);
  void follow_roster();
  /// Where this node's run has to end for another one: begins anew as a newcomer, if no step was
  /// made that would be lost, and else is the fault.
  Status keep_or_yield();
  /// Fault::ended once the run is over for a node that is not in it.
  Status run_goes_on() const;
  Result<EpochStep> outcome();
  /// Gives the run a gradient, or what local steps have come to, and waits for its step.
  Result<EpochStep> offer(std::span<const float> gradient, double loss);
  /// Waits for the step of a gradient, if the member has taken it.
  Result<EpochStep> offered(const Status& taken, double loss);
  /// A fault of the member: the gradient's alone, or else this node's.
  Status refusal(const Status& status);
  void require_none_pending() const;
  /// Throws Error where a part of a gradient does not fit.
  void require_part(std::size_t first, std::size_t elements) const;
  Result<EpochStep> local_step(std::span<const float> gradient, double loss);
  /// Says what is lost where this node goes before the others have let it go.
  void tell_what_is_lost() const;
  /// Where the run is over with this node, those that come too late are told.
  Status note_end();
  /// Looks after the others while the caller is away.
  Status serve();
  void report_failure();
  /// Leaves the channels and the roster. Requires that the own thread is kept out.
  void close();

  const EpochOptions options_;
  const std::span<float> parameters_;
  const ParameterLayout layout_;
  const SiteListener listener_;
  const std::string settings_;
  const sites::Incarnation incarnation_ = draw_incarnation();
  const FoundingVotes votes_;
  const std::shared_ptr<AllowList> list_;
  const Clock::time_point began_ = Clock::now();
  EpochReporter reporter_;
  std::optional<EpochLocalSteps> local_;  ///< none: each gradient is one of the run's

  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<Channels> channels_;
  std::optional<EpochLinks> links_;
  std::optional<EpochMember> member_;
  EpochTime search_began_{};   ///< when the roster was opened
  std::size_t up_ = 0;         ///< nodes that are up, as the roster sees it
  bool joined_ = false;        ///< the roster has let this node in
  bool took_part_ = false;     ///< it has been a member
  bool others_ended_ = false;  ///< nodes that were in touch have ended, and the run with them
  std::vector<std::string> asked_seeds_;  ///< those that are not this node
  Clock::time_point asked_{};
  Clock::time_point pumped_{};  // when messages were taken in last

  bool kept_ = false;  ///< the caller is away, and the parameters stay as they are
  std::atomic<bool> cancelled_{false};
  GradientParts given_;  ///< parts of the gradient that the caller computes
  bool misses_ = false;  ///< the gradient that the caller has is at another model than the run's
  std::optional<double> pending_;  ///< the loss of the gradient that waits for its mean
  std::optional<sites::EpochOutcome> outcome_;  ///< of that gradient
  Round round_ = 0;
  mutable CalledNode node_;  ///< last: it uses all members above
};

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
      local_(make_local_steps()),
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
  make_member(false);  // what is refused is refused here
  member_.reset();
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

// -- beginning ------------------------------------------------------------------------------------

std::unique_ptr<StepRule> EpochOptimizer::Run::make_rule() const {
  if (!options_.own_step_rule) {
    return make_step_rule(options_.step_rule);
  }
  auto rule = options_.own_step_rule();
  if (rule == nullptr) {
    throw Error("own_step_rule", "it must make a step rule each time that it is called");
  }
  return rule;
}

std::function<std::uint64_t(Round)> EpochOptimizer::Run::step_settings() const {
  const auto& own = options_.own_step_settings;
  const Round interval = options_.communication_interval;
  return own ? [own, interval](Round step) { return own(step * interval); } : own;
}

std::optional<EpochLocalSteps> EpochOptimizer::Run::make_local_steps() const {
  const Round interval = options_.communication_interval;
  if (interval < 1) {
    refuse("communication_interval", fmt::to_string(interval), "it is 1 or more");
  }
  return has_local_steps(options_) ? std::optional<EpochLocalSteps>(std::in_place, parameters_,
                                                                    layout_, interval, make_rule())
                                   : std::nullopt;
}

void EpochOptimizer::Run::make_member(bool founder) {
  auto compressor = make_compressor(options_.compressor, ContractKind::contraction);
  if (local_) {
    local_->take_initial();
  }
  member_.emplace(
      sites::EpochSetup{
          .name = options_.name,
          .incarnation = incarnation_,
          .founders = founder ? std::vector{options_.name} : std::vector<std::string>(),
          .least = options_.roster.least,
          .most = options_.roster.most,
          .parameters = local_ ? local_->run_model() : parameters_,
          .layout = layout_,
          .step_rule = local_ ? make_outer_step_rule(run_step_rule(options_)) : make_rule(),
          .learning_rate = run_step_rule(options_).learning_rate,
          .step_settings = step_settings(),
          .compressor = std::move(compressor),
          .seed = options_.seed,
          .grace = options_.grace},
      now());
  member_->keep_parameters(kept_);
}

void EpochOptimizer::Run::keep_parameters(bool kept) {
  kept_ = kept;
  if (member_) {
    member_->keep_parameters(kept);
  }
}

ChannelOptions EpochOptimizer::Run::channel_options() const {
  const auto compressor = make_compressor(options_.compressor, ContractKind::contraction);
  const sites::EpochSetup usual;
  ChannelOptions channels{
      .security = {.own = options_.roster.key.node_keys(options_.name), .peers = list_}};
  channels.rank = 0;
  channels.bind = roster_->address();
  channels.max_message_bytes =
      std::max(compressor->max_bytes(parameters_.size()), usual.piece_bytes) + kMostBesides;
  channels.max_queued_bytes =
      2 * channels.max_message_bytes + kPiecesQueued * (usual.piece_bytes + kMostBesides);
  channels.timeout = options_.timeout;
  return channels;
}

Status EpochOptimizer::Run::open() {
  if (links_) {
    return {};
  }
  reporter_.enter(SitePhase::joining);
  if (!roster_) {
    search_began_ = now();
    roster_ = std::make_unique<RunRoster>(options_.roster, options_.name, options_.listen,
                                          incarnation_, SiteFolder::life_by_clock(), list_,
                                          settings_, RosterReach::all);
  }
  auto made = make_channels(channel_options());
  if (!made.ok()) {
    return made.status();
  }
  channels_ = std::move(*made);
  links_.emplace(EpochLinks::Parts{
      .name = options_.name,
      .incarnation = incarnation_,
      .channels = *channels_,
      .list = *list_,
      .connect_within = options_.timeout,
      .clock = [this] { return now(); },
      .keep = [this](std::span<const std::byte> votes) { return votes_.keep(votes); },
      .listener = listener_});
  reporter_.tell(Level::info, SiteEvent::Kind::listening, channels_->address());
  roster_->list_again();
  return {};
}

void EpochOptimizer::Run::try_begin() {
  const bool founder = roster_->has_first_seed();
  if (founder && !votes_.found().empty()) {
    make_member(true);
    if (Status status = member_->load_founding_votes(votes_.found()); !status.ok()) {
      throw Error("state", status.message());
    }
    return;
  }
  const bool alone =
      up_ == 1 && (options_.roster.seeds.empty() || now() >= search_began_ + options_.found_after);
  const bool others = up_ > 1 && links_->all_greeted();
  if (links_->hears_of_run()) {
    make_member(false);
  } else if (founder && joined_ && up_ >= options_.roster.least && (alone || others)) {
    make_member(true);
  }
}

Status EpochOptimizer::Run::take_part() {
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

Status EpochOptimizer::Run::connect() {
  const Visit visit(node_);
  const Status& fault = node_.usable();
  if (!fault.ok() || takes_part()) {
    return fault;
  }
  Status status = take_part();
  if (status.ok()) {
    misses_ = !given_.empty();  // a gradient that begins now is at the run's model
  }
  return status;
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
  asked_seeds_ = view.asked;
  took_part_ = took_part_ || (member_ && member_->standing() == EpochStanding::member);
  roster_->set_waiting(!took_part_);
  links_->set_nodes(std::move(nodes));
}

Status EpochOptimizer::Run::run_goes_on() const {
  if (const auto& end = votes_.end();
      end && !member_ && (end->all_left || node_.rounds_are_over(end->steps))) {
    return {Fault::ended,
            fmt::format("the run that this node began is over, after step {}: to begin another, "
                        "give another folder for the state",
                        end->steps)};
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
  const auto winner = links_->outrun_by(*member_);
  if (!winner) {
    return {};
  }
  if (const Round steps = member_->step(); steps > 0) {
    return {Fault::unexpected,
            fmt::format("{} is in another run, which was begun apart from this one and has made "
                        "more steps than the {} of this one, so that this one ends: start this "
                        "node again{}, and it takes part in the other",
                        *winner, steps,
                        options_.state.empty() ? "" : " with another folder for the state")};
  }
  reporter_.tell(
      Level::warning, SiteEvent::Kind::other_run,
      fmt::format("gives up its run, in which no step was made, for that of {}", *winner));
  if (pending_) {
    outcome_ = sites::EpochOutcome{.step = 0, .left_out = true};
  }
  misses_ = misses_ || !given_.empty();
  make_member(false);
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
  if (!member_) {
    try_begin();
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
      outcome_ = member_->outcome();
    }
    return outcome_ && (member_->wants_gradient() || node_.rounds_are_over(round_));
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
  return all_left || node_.rounds_are_over(round_)
             ? votes_.note({.steps = round_, .all_left = all_left})
             : Status();
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
