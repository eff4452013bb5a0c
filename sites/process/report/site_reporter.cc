#include <sotto/sites/process/report/site_reporter.h>

#include <utility>

#include <fmt/format.h>

#include <sotto/base/digest.h>
#include <sotto/base/durable_file.h>
#include <sotto/base/elapsed.h>
#include <sotto/base/unix_time.h>
#include <sotto/trainers/files/exported_model.h>

namespace sotto {
namespace {

using Level = SiteEvent::Level;
using namespace std::chrono_literals;

constexpr auto kReportEvery = 250ms;
constexpr auto kTellEvery = 10s;

/// Puts the model where the options want it, if they do; durably.
Status write_site_model(const SiteParts& parts) {
  const SiteOptions& options = parts.options;
  if (options.export_file.empty()) {
    return {};
  }
  ModelNotes notes = options.notes;
  notes["round"] = fmt::to_string(parts.site.round());
  return write_durably(options.export_file,
                       exported_model(options.export_file, parts.layout, parts.site.parameters(),
                                      options.units, notes));
}

}  // namespace

SiteListener heard_listener(SiteListener listener, bool by_roster) {
  listener = heard(std::move(listener));
  if (!by_roster) {
    return listener;
  }
  return [listener = std::move(listener)](const SiteEvent& event) {
    if (event.kind != SiteEvent::Kind::trusts_nobody) {
      listener(event);
    }
  };
}

SiteReporter::SiteReporter(const SiteParts& parts, const SiteConnections& connections,
                           const SiteGuard& guard, const sites::Patience& patience,
                           SiteTeller teller)
    : parts_(parts),
      connections_(connections),
      guard_(guard),
      patience_(patience),
      teller_(std::move(teller)),
      started_at_(unix_time()) {}

void SiteReporter::tell_of_budget() {
  if (parts_.gradients.spent() && !std::exchange(told_of_budget_, true)) {
    const auto privacy = *parts_.gradients.privacy();
    tell(Level::warning, SiteEvent::Kind::budget_spent,
         "the privacy budget is spent: from now on the site only passes on what others make",
         {{"privacy_epsilon", privacy.epsilon}, {"privacy_steps", privacy.steps}});
  }
}

void SiteReporter::round_done() {
  round_to_tell_ = true;
  refresh(true);
}

void SiteReporter::tell_of_round() {
  if (!std::exchange(round_to_tell_, false)) {
    return;
  }
  if (told_ != Clock::time_point() && Clock::now() - told_ < kTellEvery) {
    return;
  }
  told_ = Clock::now();
  teller_.tell(
      history_.round_event(parts_.site.state(), connections_.peers(), parts_.gradients.loss()));
}

void SiteReporter::enter(SitePhase phase) {
  phase_ = phase;
  refresh(false);
}

void SiteReporter::refresh(bool now) {
  if (now || Clock::now() - reported_ >= kReportEvery) {
    reported_ = Clock::now();
    SiteReport report = present();
    if (parts_.options.board != nullptr) {
      parts_.options.board->put(report);
    }
    board_.put(std::move(report));
  }
}

SiteReport SiteReporter::present() const {
  SiteReport report;
  report.name = parts_.options.name;
  report.phase = phase_;
  report.settings = parts_.settings;
  report.rounds = parts_.options.rounds;
  report.dimension = parts_.site.parameters().size();
  report.site = parts_.site.state();
  report.training_loss = parts_.gradients.loss();
  if (const HistoryPoint* last = history_.last()) {
    report.evaluation = *last;
  }
  report.privacy = parts_.gradients.privacy();
  report.observer = parts_.options.only_takes;
  report.patience_s = patience_.lasts();
  report.put_backs = guard_.put_backs();
  report.jumps = guard_.jumps();
  report.saved_at = parts_.folder == nullptr ? 0 : parts_.folder->written_at();
  report.started_at = started_at_;
  if (parts_.options.audit != nullptr) {
    report.audit = parts_.options.audit->head();
  }
  connections_.describe(report);
  return report;
}

void SiteReporter::evaluated(const Evaluation& quality) {
  if (history_.reaches(parts_.site.round())) {
    return;
  }
  HistoryPoint point;
  point.round = parts_.site.round();
  point.time_s = seconds_since(began_);
  set_quality(point, quality);
  point.bytes_per_node = static_cast<double>(connections_.bytes_sent());
  SiteStanding standing{.mass = parts_.site.state().settled_mass};
  if (const auto privacy = parts_.gradients.privacy()) {
    standing.epsilon = privacy->epsilon;
  }
  if (const RunRoster* roster = connections_.roster()) {
    standing.nodes_up = static_cast<double>(roster->report().up);
  }
  history_.add(point, standing, parts_.options.observer);
  export_model();
  refresh(true);
}

void SiteReporter::export_model() {
  const Status status = write_site_model(parts_);
  if (std::exchange(export_trouble_, status.message()) != status.message() && !status.ok()) {
    teller_.warn(SiteEvent::Kind::export_failed, status.message());
  } else if (status.ok() && !parts_.options.export_file.empty()) {
    const std::string digest = sha256_hex(std::as_bytes(parts_.site.parameters()));
    if (std::exchange(exported_, digest) != digest) {
      tell(Level::info, SiteEvent::Kind::exported,
           fmt::format("{}; SHA-256 of the parameters {}", parts_.options.export_file, digest));
    }
  }
}

std::string words_of_beginning(const sites::SiteState& state, bool alone, bool own_model) {
  if (!state.has_model) {
    return fmt::format("starts from {}{}",
                       own_model ? "the model that it had written" : "the initial model",
                       alone ? ", out of touch" : "");
  }
  const std::string giver = state.giver.empty() ? "a neighbour" : state.giver;
  return fmt::format(
      "takes over the model of {}, at round {}, {}", giver, state.round,
      state.round_said_by == 1
          ? fmt::format("which rests on the word of {} alone", giver)
          : fmt::format("the median of what {} neighbours say", state.round_said_by));
}

}  // namespace sotto
