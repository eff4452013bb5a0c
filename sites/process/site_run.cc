#include <sotto/sites/process/site_run.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/elapsed.h>
#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>
#include <sotto/comm/channels.h>
#include <sotto/sites/core/patience.h>
#include <sotto/sites/process/helper_thread.h>
#include <sotto/sites/process/site_gradients.h>
#include <sotto/sites/process/site_guard.h>
#include <sotto/sites/process/site_history.h>
#include <sotto/sites/process/site_links.h>
#include <sotto/sites/process/site_of_options.h>

namespace sotto {
namespace {

using Clock = std::chrono::steady_clock;
using Level = SiteEvent::Level;
using namespace std::chrono_literals;

/// The site looks this often whether it should stop, and how long it has waited.
constexpr auto kSlice = 50ms;
/// While a gradient or an evaluation takes longer than this, peers are looked after.
constexpr auto kBusySlice = 10ms;
constexpr auto kReportEvery = 250ms;
constexpr auto kTellEvery = 10s;
/// A peer that owes a model gets this much longer than the patience for each of its bytes: 16 KB/s.
constexpr double kSlowestBytesPerS = 16e3;

/// Where a site begins: at the model of one of its peers, or at its own, and in which round.
std::string words_of_beginning(const sites::SiteState& state, bool alone) {
  if (!state.has_model) {
    return fmt::format("starts from the initial model{}", alone ? ", out of touch" : "");
  }
  const std::string giver = state.giver.empty() ? "a neighbour" : state.giver;
  return fmt::format(
      "takes over the model of {}, at round {}, {}", giver, state.round,
      state.round_said_by == 1
          ? fmt::format("which rests on the word of {} alone", giver)
          : fmt::format("the median of what {} neighbours say", state.round_said_by));
}

class SiteRun {
 public:
  SiteRun(const SiteOptions& options, SiteFolder& folder, Task& task, const std::atomic<bool>& stop,
          SiteBoard& board, const SiteListener& listener)
      : options_(options),
        task_(task),
        stop_(stop),
        board_(board),
        listener_(listener),
        folder_(folder),
        gradients_(task, with_ledger(options.privacy)),
        parameters_(task.dimension()),
        settings_(settings_text(shared_settings(options, task.layout()))),
        patience_(std::chrono::duration<double>(options.patience).count()),
        answers_(patience_) {}

  Result<SiteResult> run();

 private:
  std::optional<PrivacyOptions> with_ledger(std::optional<PrivacyOptions> privacy) const {
    if (privacy) {
      privacy->ledger = folder_.privacy_ledger();
    }
    return privacy;
  }

  void make_site();
  Status load();
  Status open_channels();
  Status join();
  Status train();
  Status round();
  Status take_steps();
  Status take_step(Round step);
  /// It trains, and does not only pass on or take what others make.
  bool trains() const { return !options_.only_takes && !gradients_.spent(); }
  void look_at_gradients();
  Status commit();
  Status wait_for_peers(sites::Patience& patience);
  Status end();

  Status save();
  /// A new incarnation is durable before anybody hears of it.
  Status save_new_incarnation();
  Status pump(Clock::duration longest);
  /// Runs `job` on the helper thread and serves the peers meanwhile, so that a long gradient does
  /// not look like silence.
  Status meanwhile(const std::function<void()>& job);
  Status evaluate();
  /// The model for other programs, where it is wanted.
  void export_model();
  void report(bool now);
  void tell(Level level, std::string_view kind, std::string text,
            std::vector<SiteFigure> figures = {}) const {
    listener_({level, kind, std::move(text), {}, site_ ? site_->round() : 0, std::move(figures)});
  }
  void tell_of_round();
  void enter(std::string_view phase) {
    phase_ = phase;
    report(false);
  }
  bool over() const { return options_.rounds > 0 && site_->round() >= options_.rounds; }
  SiteReport present() const;

  const SiteOptions& options_;
  Task& task_;
  const std::atomic<bool>& stop_;
  SiteBoard& board_;
  const SiteListener& listener_;
  SiteFolder& folder_;
  SiteGradients gradients_;
  std::vector<float> parameters_;
  const std::string settings_;
  std::unique_ptr<sites::Site> site_;
  std::unique_ptr<SiteGuard> guard_;
  sites::Patience patience_;
  sites::Patience answers_;  // to what a secure sum needs
  HelperThread helper_;      // with gradients_ and task_; channels close before its last job ends
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<SiteLinks> links_;

  std::string_view phase_ = "starting";
  const Clock::time_point began_ = Clock::now();
  const double started_at_ = unix_time();
  Clock::time_point reported_{};
  Clock::time_point told_{};
  TimeSplit time_;
  double loss_ = std::numeric_limits<double>::quiet_NaN();  // as gradients_ had it before the
  std::optional<PrivacySpent> privacy_;                     // helper took it
  double save_s_ = 0;
  SiteHistory history_;
  std::uint64_t resets_ = 0;
  sites::Incarnation saved_ = 0;  // in the durable state
  bool told_of_budget_ = false;
  std::string export_trouble_;  // of the last attempt
  std::string exported_;        // digest of the parameters that went out last
};

void SiteRun::make_site() {
  sites::SiteSetup setup = site_setup(options_, task_, parameters_);
  setup.incarnation = draw_incarnation();
  setup.secret = draw_secret();
  setup.life = folder_.life();
  site_ = std::make_unique<sites::Site>(std::move(setup));
  guard_ = std::make_unique<SiteGuard>(*site_, listener_);
}

Status SiteRun::load() {
  if (const std::uint32_t behind = folder_.clock_behind_s(); behind > 0) {
    tell(Level::warning, "clock-behind",
         fmt::format("the clock is {} s behind that of this site's last start: where it was set "
                     "back, start with a new state folder only once it is right again",
                     behind),
         {{"behind_s", std::uint64_t{behind}}});
  }
  auto found = folder_.read();
  if (!found.ok()) {
    return found.status();
  }
  if (!found->has_value()) {
    tell(Level::info, "started", "no state in the folder: a new site");
    return save();
  }
  const SiteStateFile& state = (*found)->state;
  if (!(*found)->warning.empty()) {
    tell(Level::warning, "state-damaged", (*found)->warning);
  }
  if (const auto format = sites::format_of_state(state.site);
      !format.empty() && format != sites::state_format()) {
    throw Error(fmt::format(
        "the state in {} is of the format '{}', and this version reads '{}' alone: start anew with "
        "another folder, and init set to a model that the other version wrote",
        folder_.path(), format, sites::state_format()));
  }
  if (const auto difference = state_difference(options_.name, settings_, state.settings);
      !difference.empty()) {
    throw Error(
        fmt::format("the state in {} was kept under other settings: {}; give these, or "
                    "start anew with another folder",
                    folder_.path(), difference));
  }
  ByteReader in(state.site);
  if (Status status = site_->load(in); !status.ok()) {
    return status.with_context(folder_.path());
  }
  const auto steps = decode_site_run(state.run);
  if (!steps.ok()) {
    return steps.status().with_context(folder_.path());
  }
  if (Status status = gradients_.expect_steps(*steps); !status.ok()) {
    return status;
  }
  saved_ = site_->state().incarnation;
  resets_ = site_->state().resets;
  look_at_gradients();
  tell(Level::info, "started", fmt::format("goes on from round {}", site_->round()));
  return {};
}

Status SiteRun::open_channels() {
  auto made = make_channels(site_channels(options_, site_->max_message_bytes()));
  if (!made.ok()) {
    return made.status();
  }
  channels_ = std::move(*made);
  links_ =
      std::make_unique<SiteLinks>(*site_, *channels_, *options_.security.peers, options_.rank,
                                  options_.exchange, options_.only_takes, settings_, listener_);
  const std::string address = channels_->address();
  tell(Level::info, "listening",
       address.empty() ? "nowhere: neither `listen` nor the own line names an address; it dials"
                       : address);
  for (const std::string& shortage : channels_->strangers().shortages) {
    tell(Level::warning, "setting", shortage);
  }
  return {};
}

Status SiteRun::pump(Clock::duration longest) {
  Status status = links_->pump(Deadline::after(longest));
  if (const auto resets = site_->state().resets; resets != resets_) {
    resets_ = resets;
    tell(Level::warning, "state-given-up",
         "a peer knows more of this site than its state does: it starts from a neighbour's model");
  }
  report(false);
  return status;
}

/// Until there is a model to train, or the site is told to stop.
Status SiteRun::join() {
  if (site_->try_begin(false)) {
    return {};
  }
  if (Status status = save_new_incarnation(); !status.ok()) {
    return status;
  }
  enter("joining");
  tell(Level::info, "joining",
       fmt::format("waits for peers, or for one's model, for {} s at most",
                   options_.found_after.count() / 1000),
       {{"found_after_s", static_cast<double>(options_.found_after.count()) / 1000}});
  const auto begin = Clock::now();
  const auto owed = std::chrono::duration_cast<Clock::duration>(
      options_.patience + std::chrono::duration<double>(
                              static_cast<double>(site_->max_message_bytes()) / kSlowestBytesPerS));
  auto asked = begin;
  while (!site_->try_begin(Clock::now() - begin >= options_.found_after)) {
    if (Status status = save_new_incarnation(); !status.ok()) {
      return status;
    }
    if (Status status = pump(kSlice); !status.ok() || stop_) {
      return status;
    }
    const auto debtors = site_->awaited();
    if (debtors.empty()) {
      asked = Clock::now();
    } else if (Clock::now() - asked > owed) {
      for (const std::size_t peer : debtors) {
        links_->give_up_on(peer, "it has promised its model and does not deliver it");
      }
      asked = Clock::now();
    }
  }
  const bool alone =
      std::ranges::none_of(links_->reports(), [](auto& peer) { return peer.site.up; });
  tell(alone ? Level::warning : Level::info, "joined", words_of_beginning(site_->state(), alone),
       {{"said_by", static_cast<std::uint64_t>(site_->state().round_said_by)}});
  return {};
}

Status SiteRun::meanwhile(const std::function<void()>& job) {
  helper_.begin(job);
  const HelperThread::Joined joined(helper_);  // it writes to the caller's frame
  Status status;
  while (!helper_.wait(status.ok() ? kBusySlice : kSlice)) {
    if (!status.ok()) {
      continue;
    }
    status = pump(0ms);
    if (!status.ok()) {
      links_.reset();
      channels_.reset();  // nobody waits for a job that leads to nothing
    }
  }
  return status;
}

void SiteRun::look_at_gradients() {
  loss_ = gradients_.loss();
  privacy_ = gradients_.privacy();
}

Status SiteRun::take_steps() {
  for (Round step = 0; step < options_.communication_interval && trains();) {
    const auto start = Clock::now();
    Status status = take_step(step);
    if (!status.ok() && guard_->put_back(status)) {
      step = 0;
      continue;
    }
    if (!status.ok()) {
      return status;
    }
    ++step;
    time_.compute_s += seconds_since(start);
    if (status = pump(0ms); !status.ok() || stop_) {
      return status;
    }
  }
  if (gradients_.spent() && !told_of_budget_) {
    told_of_budget_ = true;
    tell(Level::warning, "budget-spent",
         "the privacy budget is spent: from now on the site only passes on what others make",
         {{"privacy_epsilon", privacy_->epsilon}, {"privacy_steps", privacy_->steps}});
  }
  return {};
}

Status SiteRun::take_step(Round step) {
  const Round number = site_->round() * options_.communication_interval + step;
  std::optional<Result<std::span<const float>>> gradient;
  if (Status status = meanwhile([&] { gradient = gradients_.next(number, site_->parameters()); });
      !status.ok()) {
    return status;
  }
  look_at_gradients();
  if (!gradient->ok()) {
    return gradient->status();
  }
  if (step == 0) {
    guard_->look_at(loss_);
  }
  return site_->step(**gradient);
}

/// Nothing of a round leaves before the state that knows of it is durable.
Status SiteRun::commit() {
  if (Status status = site_->offer(); !status.ok()) {
    return status;
  }
  if (Status status = save(); !status.ok()) {
    return status;
  }
  links_->send();
  return {};
}

Status SiteRun::save() {
  const auto start = Clock::now();
  ByteBuffer site;
  site_->save(site);
  const Round round = site_->round();
  Status status = folder_.write({.round = round,
                                 .settings = state_settings(options_.name, settings_),
                                 .site = std::move(site).take(),
                                 .run = encode_site_run(gradients_.steps())});
  saved_ = site_->state().incarnation;
  save_s_ += seconds_since(start);
  return status;
}

Status SiteRun::save_new_incarnation() {
  return site_->state().incarnation == saved_ ? Status() : save();
}

Status SiteRun::wait_for_peers(sites::Patience& patience) {
  const auto start = Clock::now();
  Status status = pump(0ms);
  const auto heard = std::ranges::count_if(site_->peers(), [](const sites::PeerState& peer) {
    return peer.up && peer.tells_us && peer.waited_for;
  });
  patience.begin(0, site_->awaited(), static_cast<std::size_t>(heard));
  const std::chrono::duration<double> longest(patience.lasts());
  while (status.ok() && !stop_ && !site_->complete() && Clock::now() - start < longest) {
    status = pump(std::min<Clock::duration>(kSlice, options_.patience));
    patience.look(seconds_since(start), site_->awaited());
  }
  patience.end(seconds_since(start));
  time_.wait_s += seconds_since(start);
  return status;
}

Status SiteRun::round() {
  enter(trains() ? "training" : "relaying");
  if (Status status = take_steps(); !status.ok()) {
    return status;
  }
  if (Status status = commit(); !status.ok()) {
    return status;
  }
  enter(trains() ? "waiting" : "relaying");
  if (Status status = wait_for_peers(patience_); !status.ok()) {
    return status;
  }
  if (site_->ask_for_sum()) {
    if (Status status = wait_for_peers(answers_); !status.ok()) {
      return status;
    }
  }
  if (Status status = site_->collect(); !status.ok()) {
    return status;
  }
  if (Status status = save_new_incarnation(); !status.ok()) {
    return status;
  }
  if (options_.eval_every > 0 && site_->round() % options_.eval_every == 0) {
    if (Status status = evaluate(); !status.ok()) {
      return status;
    }
  }
  tell_of_round();
  return pump(0ms);
}

Status SiteRun::train() {
  Status status;
  while (status.ok() && !stop_ && !over()) {
    status = join();
    if (status.ok() && !stop_) {
      status = round();
    }
  }
  return status;
}

Status SiteRun::end() {
  if (Status status = save(); !status.ok()) {
    return status;
  }
  if (Status status = gradients_.settle(); !status.ok()) {
    return status;
  }
  // A site that is told to stop does not wait for an evaluation.
  if (Status status = over() ? evaluate() : Status(); !status.ok()) {
    return status;
  }
  export_model();
  phase_ = "done";
  report(true);
  return {};
}

Result<SiteResult> SiteRun::run() {
  make_site();
  for (const auto& part :
       {&SiteRun::load, &SiteRun::open_channels, &SiteRun::train, &SiteRun::end}) {
    if (Status status = (this->*part)(); !status.ok()) {
      tell(Level::error, "failed", status.message());
      return status;
    }
  }
  tell(Level::info, "ended",
       fmt::format("{} {}{}", over() ? "its rounds are over," : "was told to stop at round",
                   site_->round(), history_.text()),
       history_.with_figures({}));
  time_.wall_s = seconds_since(began_);
  SiteResult result;
  result.report = present();
  result.stopped = !over();
  result.history = history_.points();
  result.final = history_.last() == nullptr ? result.final : *history_.last();
  result.time = time_;
  result.save_s = save_s_;
  result.export_trouble = export_trouble_;
  result.parameters.assign(site_->parameters().begin(), site_->parameters().end());
  result.parameters_sha256 = sha256_hex(std::as_bytes(std::span(result.parameters)));
  return result;
}

Status SiteRun::evaluate() {
  if (history_.reaches(site_->round())) {
    return {};
  }
  // A neighbour's model may be taken over meanwhile.
  const std::vector<float> model(site_->parameters().begin(), site_->parameters().end());
  Evaluation found;
  if (Status status = meanwhile([&] { found = task_.evaluate(model); }); !status.ok()) {
    return status;
  }
  HistoryPoint point;
  point.round = site_->round();
  point.time_s = seconds_since(began_);
  set_quality(point, found);
  point.bytes_per_node = static_cast<double>(links_->bytes_sent());
  SiteStanding standing{.mass = site_->state().settled_mass};
  if (privacy_) {
    standing.epsilon = privacy_->epsilon;
  }
  history_.add(point, standing, options_.observer);
  export_model();
  return {};
}

void SiteRun::export_model() {
  const Status status =
      write_site_model(options_, task_.layout(), site_->parameters(), site_->round());
  if (std::exchange(export_trouble_, status.message()) != status.message() && !status.ok()) {
    tell(Level::warning, "export-failed", status.message());
  } else if (status.ok() && !options_.export_file.empty()) {
    const std::string digest = sha256_hex(std::as_bytes(site_->parameters()));
    if (std::exchange(exported_, digest) != digest) {
      tell(Level::info, "exported",
           fmt::format("{}; SHA-256 of the parameters {}", options_.export_file, digest));
    }
  }
}

void SiteRun::tell_of_round() {
  if (told_ != Clock::time_point() && Clock::now() - told_ < kTellEvery) {
    return;
  }
  told_ = Clock::now();
  listener_(history_.round_event(site_->state(), links_->reports(), loss_));
}

SiteReport SiteRun::present() const {
  SiteReport report;
  report.name = options_.name;
  report.phase = phase_;
  report.address = channels_ ? channels_->address() : "";
  report.settings = settings_;
  report.rounds = options_.rounds;
  report.dimension = parameters_.size();
  report.site = site_->state();
  report.training_loss = loss_;
  if (const HistoryPoint* last = history_.last()) {
    report.evaluation = *last;
  }
  report.privacy = privacy_;
  report.observer = options_.only_takes;
  report.patience_s = patience_.lasts();
  report.put_backs = guard_ ? guard_->put_backs() : 0;
  report.jumps = guard_ ? guard_->jumps() : 0;
  report.saved_at = folder_.written_at();
  report.started_at = started_at_;
  if (options_.audit != nullptr) {
    report.audit = options_.audit->head();
  }
  if (links_) {
    report.peers = links_->reports();
    report.list_trouble = options_.security.peers->trouble();
    report.refused_keys = links_->refused_keys();
    report.keys_refused = links_->keys_refused();
    report.strangers = channels_->strangers();
  }
  return report;
}

void SiteRun::report(bool now) {
  if (now || Clock::now() - reported_ >= kReportEvery) {
    reported_ = Clock::now();
    board_.put(present());
  }
}

}  // namespace

Result<SiteResult> run_site(const SiteOptions& options, SiteFolder& folder, Task& task,
                            const std::atomic<bool>& stop, SiteBoard& board,
                            const SiteListener& listener) {
  SiteRun run(options, folder, task, stop, board, listener);
  return run.run();
}

}  // namespace sotto
