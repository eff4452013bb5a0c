#include <sotto/observe/site_metrics.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/observe/metrics_text.h>
#include <sotto/sites/elastic/elastic_wait.h>

namespace sotto {
namespace {

using Report = const SiteReport&;
using Peer = const SitePeerReport&;
using Value = std::optional<double>;

/// A metric of the site, of which there is one sample. The names of counters end in _total.
struct SiteMetric {
  std::string_view name;
  std::string_view help;
  /// None: the site has no such thing, and the metric is left out. NaN: there is no value yet.
  Value (*value)(Report);
};

/// A metric of each peer.
struct PeerMetric {
  std::string_view name;
  std::string_view help;
  double (*value)(Peer);
};

constexpr double count(std::uint64_t number) { return static_cast<double>(number); }

double last(Report report, double HistoryPoint::*metric) {
  return report.evaluation ? (*report.evaluation).*metric : std::nan("");
}

Value steps_left(Report report) {
  if (!report.privacy) {
    return {};
  }
  return report.privacy->left == kUnlimitedSteps ? std::numeric_limits<double>::infinity()
                                                 : count(report.privacy->left);
}

/// What `value` makes of a part of the report; none where the site has no such part.
template <typename Part, typename Of>
Value of_part(const std::optional<Part>& part, const Of& value) {
  return part ? Value(value(*part)) : Value();
}

constexpr auto kSiteMetrics = std::to_array<SiteMetric>({
    {"round", "Rounds that are over", [](Report of) -> Value { return count(of.site.round); }},
    {"training_loss", "Loss of the last batch; NaN where it is private",
     [](Report of) -> Value { return of.training_loss; }},
    {"test_loss", "Loss on the test set, at the last evaluation",
     [](Report of) -> Value { return last(of, &HistoryPoint::loss); }},
    {"test_accuracy", "Share of the test set that is right, at the last evaluation",
     [](Report of) -> Value { return last(of, &HistoryPoint::accuracy); }},
    {"test_r_squared", "R2 of a regression on the test set, at the last evaluation",
     [](Report of) -> Value { return last(of, &HistoryPoint::r2); }},
    {"test_rmse", "Root of the mean squared error of a regression, in the file's units",
     [](Report of) -> Value { return last(of, &HistoryPoint::rmse); }},
    {"mass", "Push-sum weight that the site holds between rounds; gossip: 1",
     [](Report of) -> Value { return of.site.settled_mass; }},
    {"minted_mass_total", "Push-sum weight that it has brought in as it began",
     [](Report of) -> Value { return of.site.minted; }},
    {"written_off_mass_total", "Weight given to peers that are gone for good",
     [](Report of) -> Value { return of.site.written_off; }},
    {"raised_mass_total", "Weight that it made so that its own comes back to 1",
     [](Report of) -> Value { return of.site.raised; }},
    {"lowered_mass_total", "Weight that it took away so that its own comes back to 1, or cut off",
     [](Report of) -> Value { return of.site.lowered; }},
    {"drained", "1 while its weight has been near the floor for long",
     [](Report of) -> Value { return of.site.drained ? 1 : 0; }},
    {"own_steps", "Steps that it takes in a round",
     [](Report of) -> Value { return count(of.site.own_steps); }},
    {"patience_seconds", "How long a round waits for peers that are late",
     [](Report of) -> Value { return of.patience_s; }},
    {"models_put_back_total", "How often what came had spoiled the model",
     [](Report of) -> Value { return count(of.put_backs); }},
    {"loss_jumps_total", "How often the loss jumped after what came",
     [](Report of) -> Value { return count(of.jumps); }},
    {"secure_sums_total", "Rounds with a secure sum",
     [](Report of) -> Value { return count(of.site.sums.made); }},
    {"secure_sums_lost_total", "Rounds without one, where sites sum in secret",
     [](Report of) -> Value { return count(of.site.sums.lost); }},
    {"secure_sums_unequal_total", "Secure sums that did not add up",
     [](Report of) -> Value { return count(of.site.sums.unequal); }},
    {"secure_sum_sites", "Sites in the latest secure sum, this one included",
     [](Report of) -> Value { return count(of.site.sums.sites); }},
    {"secure_sum_clipped_total", "Elements of the model beyond the range",
     [](Report of) -> Value { return count(of.site.sums.clipped); }},
    {"resets_total", "How often it gave up its state",
     [](Report of) -> Value { return count(of.site.resets); }},
    {"start_time_seconds", "When the process began",
     [](Report of) -> Value { return of.started_at; }},
    {"privacy_epsilon", "Spent of the privacy budget",
     [](Report of) { return of_part(of.privacy, [](auto& spent) { return spent.epsilon; }); }},
    {"privacy_steps_total", "Steps that told of the data",
     [](Report of) {
       return of_part(of.privacy, [](auto& spent) { return count(spent.steps); });
     }},
    {"privacy_steps_left", "Steps that the privacy budget still allows", steps_left},
    {"nodes_up", "Nodes of the run that are up, as seen here, and this one",
     [](Report of) { return of_part(of.roster, [](auto& roster) { return count(roster.up); }); }},
    {"nodes_least", "Nodes of the run that are to be up",
     [](Report of) {
       return of_part(of.roster, [](auto& roster) { return count(roster.least); });
     }},
    {"nodes_most", "Nodes that the run lets in",
     [](Report of) { return of_part(of.roster, [](auto& roster) { return count(roster.most); }); }},
    {"epoch", "The epoch of a run with one model",
     [](Report of) { return of_part(of.epoch, [](auto& epoch) { return count(epoch.epoch); }); }},
    {"epoch_members", "Nodes whose gradients each step of the epoch takes",
     [](Report of) {
       return of_part(of.epoch, [](auto& epoch) { return count(epoch.members.size()); });
     }},
    {"gradients_left_out_total", "Gradients of this node that are in no mean",
     [](Report of) {
       return of_part(of.epoch, [](auto& epoch) { return count(epoch.left_out); });
     }},
    {"put_out_total", "How often the others went on without this node",
     [](Report of) { return of_part(of.epoch, [](auto& epoch) { return count(epoch.put_out); }); }},
    {"nodes_unequal", "Nodes that were put out as their models were not those of most",
     [](Report of) {
       return of_part(of.epoch, [](auto& epoch) { return count(epoch.unequal.size()); });
     }},
    {"members_lost", "Nodes of the epoch that this one does not hear",
     [](Report of) {
       return of_part(of.epoch, [](auto& epoch) { return count(epoch.lost.size()); });
     }},
    {"peers_file_refused", "1 while the file of peers is wrong and not in force",
     [](Report of) -> Value { return of.list_trouble.empty() ? 0 : 1; }},
    {"keys_refused_total", "Connections with keys that were not let in",
     [](Report of) -> Value { return count(of.keys_refused); }},
    {"strangers", "Connections that have not proved a key",
     [](Report of) -> Value { return count(of.strangers.waiting); }},
    {"strangers_room", "Connections without a proof that there is room for",
     [](Report of) -> Value { return count(of.strangers.room); }},
    {"strangers_cut_total", "Connections without a proof that were ended to make room for others",
     [](Report of) -> Value { return count(of.strangers.cut); }},
    {"strangers_left_total", "Connections without a proof that ended by themselves",
     [](Report of) -> Value { return count(of.strangers.left); }},
});

constexpr auto kPeerMetrics = std::to_array<PeerMetric>({
    {"peer_up", "1 while the peer is in touch", [](Peer peer) { return peer.site.up ? 1.0 : 0; }},
    {"peer_refused", "1 while one refuses the other",
     [](Peer peer) { return peer.standing.phase == PeerPhase::refused ? 1.0 : 0; }},
    {"peer_contested", "1 while two processes with the peer's key are there",
     [](Peer peer) { return peer.contested ? 1.0 : 0; }},
    {"peer_round", "Rounds that the peer has come to",
     [](Peer peer) { return count(peer.site.round); }},
    {"peer_round_age_seconds", "Since that changed; NaN before the first word",
     [](Peer peer) { return peer.round_age_s; }},
    {"peer_sent_bytes_total", "Bytes sent to the peer",
     [](Peer peer) { return count(peer.bytes_sent); }},
    {"peer_received_bytes_total", "Bytes that came from it",
     [](Peer peer) { return count(peer.bytes_received); }},
    {"peer_ups_total", "How often it was connected", [](Peer peer) { return count(peer.ups); }},
    {"peer_offences_total", "Rules that it broke", [](Peer peer) { return count(peer.offences); }},
    {"peer_mass_under_way", "Mass in parcels that it has not confirmed",
     [](Peer peer) { return peer.site.under_way; }},
    {"peer_mass_given_total", "Mass in parcels made for it",
     [](Peer peer) { return peer.site.given; }},
    {"peer_mass_taken_total", "Mass in its parcels that were taken in",
     [](Peer peer) { return peer.site.taken; }},
    {"peer_pulls_cut_total", "Pulls of its parcels that were cut, as they were too long",
     [](Peer peer) { return count(peer.site.cut); }},
    {"peer_models_spoiled_total", "Times that the model had to be put back with its parcels in it",
     [](Peer peer) { return count(peer.site.spoiled); }},
    {"peer_barred", "1 while its parcels do not count",
     [](Peer peer) { return peer.site.barred ? 1.0 : 0; }},
    {"peer_waited_for",
     "0 for a peer whose parcels, or answers about sums, were late again and again",
     [](Peer peer) { return peer.site.waited_for && peer.site.answers ? 1.0 : 0; }},
});

std::string_view type_of(std::string_view name) {
  return name.ends_with("_total") ? "counter" : "gauge";
}

void add_phase(MetricsText& metrics, Report report) {
  metrics.begin("phase", "gauge", "1 for what the site is at, 0 for all else");
  for (const SitePhase phase : site_phases()) {
    metrics.sample(report.phase == phase ? 1 : 0, metric_label("phase", name_of(phase)));
  }
}

void add_nodes(MetricsText& metrics, const SiteRosterReport& roster) {
  metrics.begin("node_state", "gauge", "1; how a node of the run stands, as seen here");
  for (const SiteMember& member : roster.members) {
    metrics.sample(1, fmt::format("{},{}", metric_label("node", member.name),
                                  metric_label("state", member.state)));
  }
}

void add_waits(MetricsText& metrics, const SiteEpochReport& epoch) {
  metrics.begin("run_waits", "gauge", "1 for what keeps the run's next step from being made");
  for (const ElasticWait::Kind kind : elastic_wait_kinds()) {
    metrics.sample(epoch.waits_for == name_of(kind) ? 1 : 0, metric_label("for", name_of(kind)));
  }
}

void add_peers(MetricsText& metrics, Report report) {
  metrics.begin("peer_state", "gauge", "1; how the peer stands, and why");
  for (const SitePeerReport& peer : report.peers) {
    metrics.sample(1, fmt::format("{},{},{}", metric_label("peer", peer.site.name),
                                  metric_label("state", name_of(peer.standing.phase)),
                                  metric_label("reason", name_of(peer.standing.concern))));
  }
  for (const PeerMetric& metric : kPeerMetrics) {
    metrics.begin(metric.name, type_of(metric.name), metric.help);
    for (const SitePeerReport& peer : report.peers) {
      metrics.sample(metric.value(peer), metric_label("peer", peer.site.name));
    }
  }
  metrics.begin("peer_key_end_time_seconds", "gauge", "When the key ends that the peer shows");
  for (const SitePeerReport& peer : report.peers) {
    if (peer.key_until) {
      metrics.sample(static_cast<double>(*peer.key_until), metric_label("peer", peer.site.name));
    }
  }
}

}  // namespace

std::string site_metrics(const SiteReport& report, double now) {
  MetricsText metrics("sotto_");
  metrics.begin("site_info", "gauge", "The site and its version");
  metrics.sample(1, fmt::format("{},{}", metric_label("name", report.name),
                                metric_label("version", SOTTO_VERSION)));
  add_phase(metrics, report);
  for (const SiteMetric& metric : kSiteMetrics) {
    if (const Value value = metric.value(report)) {
      metrics.one(metric.name, type_of(metric.name), metric.help, *value);
    }
  }
  metrics.one("state_age_seconds", "gauge", "Since the state was written",
              report.saved_at > 0 ? std::max(0.0, now - report.saved_at) : std::nan(""));
  if (report.roster) {
    add_nodes(metrics, *report.roster);
  }
  if (report.epoch) {
    add_waits(metrics, *report.epoch);
  }
  add_peers(metrics, report);
  return std::move(metrics).take();
}

}  // namespace sotto
