#include <sotto/sites/nodes/report/site_event.h>

#include <algorithm>
#include <array>
#include <utility>

#include <sotto/base/check.h>

namespace sotto {
namespace {

using Kind = SiteEvent::Kind;
using Named = std::pair<Kind, std::string_view>;

constexpr auto kNames = std::to_array<Named>({
    {Kind::started, "started"},
    {Kind::listening, "listening"},
    {Kind::stopping, "stopping"},
    {Kind::ended, "ended"},
    {Kind::joining, "joining"},
    {Kind::joined, "joined"},
    {Kind::round, "round"},
    {Kind::peer_up, "peer-up"},
    {Kind::peer_down, "peer-down"},
    {Kind::peer_unreachable, "peer-unreachable"},
    {Kind::peer_refused, "peer-refused"},
    {Kind::key_refused, "key-refused"},
    {Kind::door_crowded, "door-crowded"},
    {Kind::peer_restless, "peer-restless"},
    {Kind::peer_contested, "peer-contested"},
    {Kind::peer_offence, "peer-offence"},
    {Kind::peer_given_up, "peer-given-up"},
    {Kind::send_only, "send-only"},
    {Kind::peer_takes, "peer-takes"},
    {Kind::peer_gives, "peer-gives"},
    {Kind::peer_sends_nothing, "peer-sends-nothing"},
    {Kind::peer_confirms_nothing, "peer-confirms-nothing"},
    {Kind::peer_mints, "peer-mints"},
    {Kind::peer_far_ahead, "peer-far-ahead"},
    {Kind::peer_stays_far, "peer-stays-far"},
    {Kind::peer_late, "peer-late"},
    {Kind::model_put_back, "model-put-back"},
    {Kind::peer_spoils, "peer-spoils"},
    {Kind::peer_barred, "peer-barred"},
    {Kind::loss_jump, "loss-jump"},
    {Kind::peers_file, "peers-file"},
    {Kind::peers_refused, "peers-refused"},
    {Kind::key_ending, "key-ending"},
    {Kind::trusts_nobody, "trusts-nobody"},
    {Kind::clock_behind, "clock-behind"},
    {Kind::setting, "setting"},
    {Kind::exported, "exported"},
    {Kind::list_in_force, "list-in-force"},
    {Kind::audit_cut, "audit-cut"},
    {Kind::audit_failed, "audit-failed"},
    {Kind::export_failed, "export-failed"},
    {Kind::tensorboard_failed, "tensorboard-failed"},
    {Kind::state_damaged, "state-damaged"},
    {Kind::state_given_up, "state-given-up"},
    {Kind::budget_spent, "budget-spent"},
    {Kind::node_came, "node-came"},
    {Kind::node_left, "node-left"},
    {Kind::node_lost, "node-lost"},
    {Kind::node_conflict, "node-conflict"},
    {Kind::other_settings, "other-settings"},
    {Kind::nodes_few, "nodes-few"},
    {Kind::nodes_enough, "nodes-enough"},
    {Kind::nobody_heard, "nobody-heard"},
    {Kind::seeds_silent, "seeds-silent"},
    {Kind::store_silent, "store-silent"},
    {Kind::store_answers, "store-answers"},
    {Kind::store_refused, "store-refused"},
    {Kind::datagrams_refused, "datagrams-refused"},
    {Kind::epoch_began, "epoch-began"},
    {Kind::put_out, "put-out"},
    {Kind::node_unequal, "node-unequal"},
    {Kind::run_waits, "run-waits"},
    {Kind::run_goes_on, "run-goes-on"},
    {Kind::gradients_left_out, "gradients-left-out"},
    {Kind::run_given_up, "run-given-up"},
    {Kind::state_not_saved, "state-not-saved"},
    {Kind::other_run, "other-run"},
    {Kind::undelivered, "undelivered"},
    {Kind::newer_process, "newer-process"},
    {Kind::failed, "failed"},
});

}  // namespace

SiteListener heard(SiteListener listener) {
  return listener ? std::move(listener) : [](const SiteEvent&) {};
}

std::string_view name_of(SiteEvent::Kind kind) {
  const auto* const found = std::ranges::find(kNames, kind, &Named::first);
  check(found != kNames.end(), "every kind has a name");
  return found->second;
}

std::span<const SiteEvent::Kind> site_event_kinds() {
  static const auto kinds = [] {
    std::array<Kind, kNames.size()> all{};
    std::ranges::transform(kNames, all.begin(), &Named::first);
    return all;
  }();
  return kinds;
}

}  // namespace sotto
