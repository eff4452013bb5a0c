#include <sotto/sites/elastic/elastic_reporter.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/elapsed.h>
#include <sotto/base/unix_time.h>

namespace sotto {
namespace {

using namespace std::chrono_literals;
using sites::EpochMember;
using sites::EpochNode;
using sites::EpochStanding;

constexpr auto kReportAgain = 250ms;
constexpr auto kTellStepAgain = 10s;
constexpr auto kTellLeftOutAgain = 10s;
/// What is waited for is looked at so often.
constexpr auto kLookAgain = 50ms;

std::string_view standing_name(EpochStanding standing) {
  switch (standing) {
    case EpochStanding::founding:
      return "founding";
    case EpochStanding::joining:
      return "joining";
    case EpochStanding::member:
      return "member";
    case EpochStanding::leaving:
      return "leaving";
    case EpochStanding::left:
      return "left";
    case EpochStanding::failed:
      return "failed";
  }
  return "";
}

std::vector<std::string> names_of(const std::vector<EpochNode>& members) {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const EpochNode& member : members) {
    names.push_back(member.name);
  }
  return names;
}

}  // namespace

ElasticReporter::ElasticReporter(const ElasticOptions& options, std::string settings,
                                 std::size_t dimension, const ElasticConnections& connections,
                                 SiteListener listener)
    : options_(options),
      settings_(std::move(settings)),
      dimension_(dimension),
      connections_(connections),
      listener_(heard(std::move(listener))),
      started_at_(unix_time()),
      loss_(std::numeric_limits<double>::quiet_NaN()) {}

void ElasticReporter::tell(SiteEvent::Level level, SiteEvent::Kind kind, std::string text) const {
  listener_({level, kind, std::move(text), {}, step_, {}});
}

bool ElasticReporter::tell_of_epoch(const EpochMember& member) {
  const bool is_member = member.standing() == EpochStanding::member;
  const bool changed = is_member != was_member_ || epoch_ != member.epoch();
  if (is_member && std::exchange(epoch_, member.epoch()) != member.epoch()) {
    told_ = {};  // the first step of each epoch is told
    if (!was_member_) {
      tell(SiteEvent::Level::info, SiteEvent::Kind::joined,
           fmt::format("takes part, at step {} of the run", member.base()));
    }
    tell(SiteEvent::Level::info, SiteEvent::Kind::epoch_began,
         fmt::format("epoch {} begins after step {}, with {} nodes: {}", member.epoch(),
                     member.base(), member.members().size(),
                     fmt::join(names_of(member.members()), ", ")));
  }
  if (was_member_ && member.standing() == EpochStanding::joining) {
    ++put_out_;
    tell(
        SiteEvent::Level::warning, SiteEvent::Kind::put_out,
        "the others went on without this node: it joins anew, and the gradient that it had offered "
        "is left out");
  }
  if (is_member || member.standing() == EpochStanding::joining) {
    was_member_ = is_member;
  }
  return changed;
}

void ElasticReporter::tell_of_step(const EpochMember& member) {
  if (!was_member_ || step_ <= member.base() ||
      (told_ != Clock::time_point() && Clock::now() - told_ < kTellStepAgain)) {
    return;
  }
  told_ = Clock::now();
  SiteEvent event = {
      .kind = SiteEvent::Kind::round,
      .text = fmt::format("epoch {} of {} nodes", member.epoch(), member.members().size()),
      .round = step_,
      .figures = {{"epoch", member.epoch()}, {"members", std::uint64_t{member.members().size()}}}};
  if (std::isfinite(loss_)) {
    event.text = fmt::format("loss {:.4f}, {}", loss_, event.text);
    event.figures.push_back({"loss", loss_});
  }
  event.text += history_.text();
  event.figures = history_.with_figures(std::move(event.figures));
  listener_(event);
}

ElasticWait ElasticReporter::wait_now(const EpochMember* member, const NodeSight& sight) const {
  const SeedStoreBoard* const store = connections_.store();
  return wait_of({.member = member,
                  .node = sight,
                  .refused = connections_.refused(),
                  .again_after = options_.begin_again_after,
                  .state = options_.state,
                  .address = connections_.address(),
                  .stored = store != nullptr ? std::optional(store->runs()) : std::nullopt,
                  .hears = [&](const EpochNode& node) { return connections_.hears(node); }});
}

void ElasticReporter::tell_of_wait(const EpochMember* member, const NodeSight& sight) {
  if (Clock::now() - looked_ < kLookAgain) {
    return;
  }
  looked_ = Clock::now();
  wait_ = wait_now(member, sight);
  const auto time = std::chrono::duration_cast<ElasticWaitWatch::Time>(looked_ - began_);
  if (auto event = watch_.follow(wait_, time)) {
    event->round = step_;
    listener_(*event);
  }
}

void ElasticReporter::note(const sites::LeftOut& left_out) {
  for (const auto& [name, count] : left_out.counts) {
    untold_.counts[name] += count;
  }
  untold_.latest = std::max(untold_.latest, left_out.latest);
}

void ElasticReporter::note(const sites::PutOutUnequal& unequal) {
  const std::vector<std::string> names = names_of(unequal.nodes);
  unequal_.insert(names.begin(), names.end());
  const std::string_view then =
      unequal.comes_back ? "this node takes the state anew from the others, once: if it differs "
                           "again it ends"
      : unequal.own ? "this node does not come back, as it has taken the state anew before, or "
                      "leaves"
                    : "the others go on without it, and no step is lost";
  listener_({.level = SiteEvent::Level::error,
             .kind = SiteEvent::Kind::node_unequal,
             .text = fmt::format("{}: the model or the mean of step {} was not that of more than "
                                 "half of the members; {}. Test processor and memory of that "
                                 "machine, and compare its build of sotto and its settings with "
                                 "the others'",
                                 fmt::join(names, ", "), unequal.step + 1, then),
             .peer = names.front(),
             .round = step_});
}

void ElasticReporter::tell_of_left_out() {
  const bool lately =
      left_out_told_ != Clock::time_point() && Clock::now() - left_out_told_ < kTellLeftOutAgain;
  if (untold_.counts.empty() || lately) {
    return;
  }
  left_out_told_ = Clock::now();
  std::vector<std::string> whose;
  std::uint64_t all = 0;
  for (const auto& [name, count] : untold_.counts) {
    whose.push_back(fmt::format("{} of {}", count, name));
    all += count;
  }
  listener_({.level = SiteEvent::Level::info,
             .kind = SiteEvent::Kind::gradients_left_out,
             .text = fmt::format("gradients did not come within the grace of {} s after those of "
                                 "more than half, and are not whole in the means: {}; the latest "
                                 "of step {}",
                                 std::chrono::duration<double>(
                                     options_.grace.value_or(std::chrono::milliseconds(0)))
                                     .count(),
                                 fmt::join(whose, ", "), untold_.latest),
             .round = step_,
             .figures = {{"gradients", all}, {"latest", untold_.latest}}});
  untold_ = {};
}

void ElasticReporter::follow(const EpochMember* member, const NodeSight& sight) {
  bool changed = false;
  if (member != nullptr) {
    step_ = member->step();
    changed = tell_of_epoch(*member);
    tell_of_step(*member);
  }
  tell_of_wait(member, sight);
  tell_of_left_out();
  if (changed || Clock::now() - reported_ >= kReportAgain) {
    refresh(member);
  }
}

void ElasticReporter::step_done(double loss, bool left_out) {
  loss_ = loss;
  left_out_ += left_out ? 1 : 0;
}

void ElasticReporter::evaluated(const EpochMember* member, Round step, const Evaluation& quality) {
  if (history_.reaches(step)) {
    return;
  }
  HistoryPoint point;
  point.round = step;
  point.time_s = seconds_since(began_);
  set_quality(point, quality);
  point.bytes_per_node = static_cast<double>(connections_.bytes_sent());
  SiteStanding standing;
  if (const auto nodes = connections_.nodes()) {
    standing.nodes_up = static_cast<double>(nodes->up);
  }
  if (member != nullptr) {
    standing.epoch = static_cast<double>(member->epoch());
    standing.epoch_members = static_cast<double>(member->members().size());
  }
  history_.add(point, standing, options_.observer);
  refresh(member);
}

void ElasticReporter::refresh(const EpochMember* member) {
  reported_ = Clock::now();
  SiteReport report = present(member);
  if (options_.board != nullptr) {
    options_.board->put(report);
  }
  board_.put(std::move(report));
}

SiteReport ElasticReporter::present(const EpochMember* member) const {
  SiteReport report;
  report.name = options_.name;
  report.phase = phase_;
  report.settings = settings_;
  report.rounds = options_.rounds;
  report.dimension = dimension_;
  report.training_loss = loss_;
  report.started_at = started_at_;
  report.site.round = step_;
  report.site.incarnation = connections_.incarnation();
  report.site.has_model = was_member_;
  if (const HistoryPoint* last = history_.last()) {
    report.evaluation = *last;
  }
  std::set<std::string> members;
  SiteEpochReport& epoch = report.epoch.emplace();
  epoch.standing = standing_name(EpochStanding::joining);
  epoch.waits_for = name_of(wait_.kind);
  epoch.waits_s = seconds_since(began_) - std::chrono::duration<double>(watch_.since()).count();
  epoch.lost = wait_.lost;
  if (member != nullptr) {
    epoch.standing = standing_name(member->standing());
    if (member->history() != sites::History{}) {
      epoch.run = fmt::format("{:016x}{:016x}", member->history()[1], member->history()[0]);
    }
    epoch.epoch = member->epoch();
    epoch.base = member->base();
    epoch.members = names_of(member->members());
    epoch.left_out = left_out_;
    epoch.put_out = put_out_;
    epoch.unequal.assign(unequal_.begin(), unequal_.end());
    members.insert(epoch.members.begin(), epoch.members.end());
  }
  report.address = connections_.address();
  report.roster = connections_.nodes();
  if (report.roster) {
    for (SiteMember& one : report.roster->members) {
      one.neighbour = one.name != options_.name && members.contains(one.name);
    }
  }
  return report;
}

}  // namespace sotto
