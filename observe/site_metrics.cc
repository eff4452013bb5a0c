#include <sotto/observe/site_metrics.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/observe/metrics_text.h>
#include <sotto/sites/live/epoch_wait.h>

namespace sotto {
namespace {

template <typename Value>
void add_by_peer(MetricsText& metrics, const SiteReport& report, std::string_view name,
                 std::string_view type, std::string_view help, const Value& value) {
  metrics.begin(name, type, help);
  for (const SitePeerReport& peer : report.peers) {
    metrics.sample(static_cast<double>(value(peer)), metric_label("peer", peer.site.name));
  }
}

void add_phase(MetricsText& metrics, const SiteReport& report) {
  metrics.begin("phase", "gauge", "1 for what the site is at, 0 for all else");
  for (const SitePhase phase : site_phases()) {
    metrics.sample(report.phase == phase ? 1 : 0, metric_label("phase", name_of(phase)));
  }
}

void add_peers(MetricsText& metrics, const SiteReport& report) {
  using Peer = const SitePeerReport&;
  metrics.begin("peer_state", "gauge", "1; how the peer stands, and why");
  for (const SitePeerReport& peer : report.peers) {
    metrics.sample(1, fmt::format("{},{},{}", metric_label("peer", peer.site.name),
                                  metric_label("state", name_of(peer.standing.phase)),
                                  metric_label("reason", name_of(peer.standing.concern))));
  }
  add_by_peer(metrics, report, "peer_up", "gauge", "1 while the peer is in touch",
              [](Peer peer) { return peer.site.up ? 1 : 0; });
  add_by_peer(metrics, report, "peer_refused", "gauge", "1 while one refuses the other",
              [](Peer peer) { return peer.standing.phase == PeerPhase::refused ? 1 : 0; });
  add_by_peer(metrics, report, "peer_contested", "gauge",
              "1 while two processes with the peer's key are there",
              [](Peer peer) { return peer.contested ? 1 : 0; });
  add_by_peer(metrics, report, "peer_round", "gauge", "Rounds that the peer has come to",
              [](Peer peer) { return peer.site.round; });
  add_by_peer(metrics, report, "peer_round_age_seconds", "gauge",
              "Since that changed; NaN before the first word",
              [](Peer peer) { return peer.round_age_s; });
  add_by_peer(metrics, report, "peer_sent_bytes_total", "counter", "Bytes sent to the peer",
              [](Peer peer) { return peer.bytes_sent; });
  add_by_peer(metrics, report, "peer_received_bytes_total", "counter", "Bytes that came from it",
              [](Peer peer) { return peer.bytes_received; });
  add_by_peer(metrics, report, "peer_ups_total", "counter", "How often it was connected",
              [](Peer peer) { return peer.ups; });
  add_by_peer(metrics, report, "peer_offences_total", "counter", "Rules that it broke",
              [](Peer peer) { return peer.offences; });
  add_by_peer(metrics, report, "peer_mass_under_way", "gauge",
              "Mass in parcels that it has not confirmed",
              [](Peer peer) { return peer.site.under_way; });
  add_by_peer(metrics, report, "peer_mass_given_total", "counter", "Mass in parcels made for it",
              [](Peer peer) { return peer.site.given; });
  add_by_peer(metrics, report, "peer_mass_taken_total", "counter",
              "Mass in its parcels that were taken in", [](Peer peer) { return peer.site.taken; });
  add_by_peer(metrics, report, "peer_pulls_cut_total", "counter",
              "Pulls of its parcels that were cut, as they were too long",
              [](Peer peer) { return peer.site.cut; });
  add_by_peer(metrics, report, "peer_models_spoiled_total", "counter",
              "Times that the model had to be put back with its parcels in it",
              [](Peer peer) { return peer.site.spoiled; });
  add_by_peer(metrics, report, "peer_barred", "gauge", "1 while its parcels do not count",
              [](Peer peer) { return peer.site.barred ? 1 : 0; });
  metrics.begin("peer_key_end_time_seconds", "gauge", "When the key ends that the peer shows");
  for (const SitePeerReport& peer : report.peers) {
    if (peer.key_until) {
      metrics.sample(static_cast<double>(*peer.key_until), metric_label("peer", peer.site.name));
    }
  }
  add_by_peer(metrics, report, "peer_waited_for", "gauge",
              "0 for a peer whose parcels, or answers about sums, were late again and again",
              [](Peer peer) { return peer.site.waited_for && peer.site.answers ? 1 : 0; });
}

void add_sums(MetricsText& metrics, const sites::SumCounts& sums) {
  metrics.one("secure_sums_total", "counter", "Rounds with a secure sum",
              static_cast<double>(sums.made));
  metrics.one("secure_sums_lost_total", "counter", "Rounds without one, where sites sum in secret",
              static_cast<double>(sums.lost));
  metrics.one("secure_sums_unequal_total", "counter", "Secure sums that did not add up",
              static_cast<double>(sums.unequal));
  metrics.one("secure_sum_sites", "gauge", "Sites in the latest secure sum, this one included",
              static_cast<double>(sums.sites));
  metrics.one("secure_sum_clipped_total", "counter", "Elements of the model beyond the range",
              static_cast<double>(sums.clipped));
}

void add_privacy(MetricsText& metrics, const PrivacySpent& spent) {
  metrics.one("privacy_epsilon", "gauge", "Spent of the privacy budget", spent.epsilon);
  metrics.one("privacy_steps_total", "counter", "Steps that told of the data",
              static_cast<double>(spent.steps));
  metrics.one("privacy_steps_left", "gauge", "Steps that the privacy budget still allows",
              spent.left == kUnlimitedSteps ? std::numeric_limits<double>::infinity()
                                            : static_cast<double>(spent.left));
}

void add_roster(MetricsText& metrics, const SiteRosterReport& roster) {
  metrics.one("nodes_up", "gauge", "Nodes of the run that are up, as seen here, and this one",
              static_cast<double>(roster.up));
  metrics.one("nodes_least", "gauge", "Nodes of the run that are to be up",
              static_cast<double>(roster.least));
  metrics.one("nodes_most", "gauge", "Nodes that the run lets in",
              static_cast<double>(roster.most));
  metrics.begin("node_state", "gauge", "1; how a node of the run stands, as seen here");
  for (const SiteMember& member : roster.members) {
    metrics.sample(1, fmt::format("{},{}", metric_label("node", member.name),
                                  metric_label("state", member.state)));
  }
}

void add_epoch(MetricsText& metrics, const SiteEpochReport& epoch) {
  metrics.one("epoch", "gauge", "The epoch of a run with one model",
              static_cast<double>(epoch.epoch));
  metrics.one("epoch_members", "gauge", "Nodes whose gradients each step of the epoch takes",
              static_cast<double>(epoch.members.size()));
  metrics.one("gradients_left_out_total", "counter", "Gradients of this node that are in no mean",
              static_cast<double>(epoch.left_out));
  metrics.one("put_out_total", "counter", "How often the others went on without this node",
              static_cast<double>(epoch.put_out));
  metrics.begin("run_waits", "gauge", "1 for what keeps the run's next step from being made");
  for (const EpochWait::Kind kind : epoch_wait_kinds()) {
    metrics.sample(epoch.waits_for == name_of(kind) ? 1 : 0, metric_label("for", name_of(kind)));
  }
  metrics.one("members_lost", "gauge", "Nodes of the epoch that this one does not hear",
              static_cast<double>(epoch.lost.size()));
}

}  // namespace

std::string site_metrics(const SiteReport& report, double now) {
  MetricsText metrics("sotto_");
  metrics.begin("site_info", "gauge", "The site and its version");
  metrics.sample(1, fmt::format("{},{}", metric_label("name", report.name),
                                metric_label("version", SOTTO_VERSION)));
  add_phase(metrics, report);
  metrics.one("round", "gauge", "Rounds that are over", static_cast<double>(report.site.round));
  metrics.one("training_loss", "gauge", "Loss of the last batch; NaN where it is private",
              report.training_loss);
  metrics.one("test_loss", "gauge", "Loss on the test set, at the last evaluation",
              report.evaluation ? report.evaluation->loss : std::nan(""));
  metrics.one("test_accuracy", "gauge", "Share of the test set that is right, at the last one",
              report.evaluation ? report.evaluation->accuracy : std::nan(""));
  metrics.one("test_r_squared", "gauge", "R2 of a regression on the test set, at the last one",
              report.evaluation ? report.evaluation->r2 : std::nan(""));
  metrics.one("test_rmse", "gauge",
              "Root of the mean squared error of a regression, in the file's units",
              report.evaluation ? report.evaluation->rmse : std::nan(""));
  metrics.one("mass", "gauge", "Push-sum weight that the site holds between rounds; gossip: 1",
              report.site.settled_mass);
  metrics.one("minted_mass_total", "counter", "Push-sum weight that it has brought in as it began",
              report.site.minted);
  metrics.one("written_off_mass_total", "counter", "Weight given to peers that are gone for good",
              report.site.written_off);
  metrics.one("raised_mass_total", "counter", "Weight that it made so that its own comes back to 1",
              report.site.raised);
  metrics.one("lowered_mass_total", "counter", "Weight that it took away likewise, or cut off",
              report.site.lowered);
  metrics.one("drained", "gauge", "1 while its weight has been near the floor for long",
              report.site.drained ? 1 : 0);
  metrics.one("own_steps", "gauge", "Steps that it takes in a round",
              static_cast<double>(report.site.own_steps));
  metrics.one("patience_seconds", "gauge", "How long a round waits for peers that are late",
              report.patience_s);
  metrics.one("models_put_back_total", "counter", "How often what came had spoiled the model",
              static_cast<double>(report.put_backs));
  metrics.one("loss_jumps_total", "counter", "How often the loss jumped after what came",
              static_cast<double>(report.jumps));
  add_sums(metrics, report.site.sums);
  metrics.one("resets_total", "counter", "How often it gave up its state",
              static_cast<double>(report.site.resets));
  metrics.one("state_age_seconds", "gauge", "Since the state was written",
              report.saved_at > 0 ? std::max(0.0, now - report.saved_at) : std::nan(""));
  metrics.one("start_time_seconds", "gauge", "When the process began", report.started_at);
  if (report.privacy) {
    add_privacy(metrics, *report.privacy);
  }
  if (report.roster) {
    add_roster(metrics, *report.roster);
  }
  if (report.epoch) {
    add_epoch(metrics, *report.epoch);
  }
  add_peers(metrics, report);
  metrics.one("peers_file_refused", "gauge", "1 while the file of peers is wrong and not in force",
              report.list_trouble.empty() ? 0 : 1);
  metrics.one("keys_refused_total", "counter", "Connections with keys that were not let in",
              static_cast<double>(report.keys_refused));
  metrics.one("strangers", "gauge", "Connections that have not proved a key",
              static_cast<double>(report.strangers.waiting));
  metrics.one("strangers_room", "gauge", "Connections without a proof that there is room for",
              static_cast<double>(report.strangers.room));
  metrics.one("strangers_cut_total", "counter",
              "Connections without a proof that were ended to make room for others",
              static_cast<double>(report.strangers.cut));
  return std::move(metrics).take();
}

}  // namespace sotto
