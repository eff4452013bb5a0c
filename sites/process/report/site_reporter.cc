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

/// Bytes of messages sent to all peers.
std::uint64_t bytes_sent(const Channels& channels) {
  std::uint64_t sum = 0;
  for (const ChannelTraffic& passed : channels.traffic()) {
    sum += passed.bytes_sent;
  }
  return sum;
}

/// Puts the model where the options want it, if they do; durably.
Status write_site_model(const SiteOptions& options, const ParameterLayout& layout,
                        std::span<const float> model, Round round) {
  if (options.export_file.empty()) {
    return {};
  }
  ModelNotes notes = options.notes;
  notes["round"] = fmt::to_string(round);
  return write_durably(options.export_file,
                       exported_model(options.export_file, layout, model, options.units, notes));
}

}  // namespace

SiteListener heard_listener(SiteListener listener, bool by_roster) {
  if (listener && !by_roster) {
    return listener;
  }
  return [listener = std::move(listener)](const SiteEvent& event) {
    if (listener && event.kind != SiteEvent::Kind::trusts_nobody) {
      listener(event);
    }
  };
}

SiteReporter::SiteReporter(const SiteParts& parts, const ParameterLayout& layout,
                           const SiteGuard& guard, const sites::Patience& patience,
                           SiteListener listener)
    : parts_(parts),
      layout_(layout),
      guard_(guard),
      patience_(patience),
      listener_(std::move(listener)),
      started_at_(unix_time()) {}

void SiteReporter::follow(const Channels* channels, const PeerMonitor* monitor,
                          const RunRoster* roster) {
  channels_ = channels;
  monitor_ = monitor;
  roster_ = roster;
}

void SiteReporter::tell(Level level, SiteEvent::Kind kind, std::string text,
                        std::vector<SiteFigure> figures) const {
  listener_({level, kind, std::move(text), {}, parts_.site.round(), std::move(figures)});
}

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
  const auto peers = monitor_ == nullptr ? std::vector<SitePeerReport>() : monitor_->reports();
  listener_(history_.round_event(parts_.site.state(), peers, parts_.gradients.loss()));
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
  report.address = channels_ == nullptr ? "" : channels_->address();
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
  if (monitor_ != nullptr) {
    report.peers = monitor_->reports();
    report.list_trouble = parts_.options.security.peers->trouble();
    report.refused_keys = monitor_->admission().refused_keys();
    report.keys_refused = channels_->refused_keys().times;
    report.strangers = channels_->strangers();
  }
  if (roster_ != nullptr) {
    report.roster = roster_->report();
  }
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
  point.bytes_per_node = channels_ == nullptr ? 0 : static_cast<double>(bytes_sent(*channels_));
  SiteStanding standing{.mass = parts_.site.state().settled_mass};
  if (const auto privacy = parts_.gradients.privacy()) {
    standing.epsilon = privacy->epsilon;
  }
  if (roster_ != nullptr) {
    standing.nodes_up = static_cast<double>(roster_->report().up);
  }
  history_.add(point, standing, parts_.options.observer);
  export_model();
  refresh(true);
}

void SiteReporter::export_model() {
  const Status status =
      write_site_model(parts_.options, layout_, parts_.site.parameters(), parts_.site.round());
  if (std::exchange(export_trouble_, status.message()) != status.message() && !status.ok()) {
    tell(Level::warning, SiteEvent::Kind::export_failed, status.message());
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
