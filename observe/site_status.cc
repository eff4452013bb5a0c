#include <sotto/observe/site_status.h>

#include <string>

#include <fmt/format.h>

#include <sotto/optim/privacy/privacy_json.h>

namespace sotto {
namespace {

/// Incarnations are numbers of 64 bits, which JSON's readers may round.
std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

Json peer_json(const SitePeerReport& peer) {
  const sites::PeerState& site = peer.site;
  return {{"name", site.name},
          {"up", site.up},
          {"connected", peer.connected},
          {"state", name_of(peer.standing.phase)},
          {"reason", name_of(peer.standing.concern)},
          {"trouble", peer.standing.text},
          {"refused", peer.standing.phase == PeerPhase::refused},
          {"contested", peer.contested},
          {"key", peer.key},
          {"key_until", peer.key_until ? Json(*peer.key_until) : Json()},
          {"one_connection", peer.one_connection},
          {"hears", peer.hears},
          {"tells", peer.tells},
          {"round", site.round},
          {"round_age_s", peer.round_age_s},
          {"incarnation", hex(site.incarnation)},
          {"life", site.life},
          {"parcels_sent", site.sent},
          {"parcels_received_there", site.receipts},
          {"parcels_applied", site.applied},
          {"mass_given", site.given},
          {"mass_taken", site.taken},
          {"mass_under_way", site.under_way},
          {"hears_us", site.hears_us},
          {"tells_us", site.tells_us},
          {"observer", site.observer},
          {"waited_for", site.waited_for},
          {"answers_waited_for", site.answers},
          {"pulls_cut", site.cut},
          {"models_spoiled", site.spoiled},
          {"barred", site.barred},
          {"bytes_sent", peer.bytes_sent},
          {"bytes_received", peer.bytes_received},
          {"ups", peer.ups},
          {"offences", peer.offences}};
}

Json refused_key_json(const SiteRefusedKey& key) {
  return {{"key", key.refused.key},
          {"address", key.refused.address},
          {"times", key.refused.times},
          {"name", key.name},
          {"listed", key.listed}};
}

Json roster_json(const SiteRosterReport& roster) {
  Json nodes = Json::array();
  for (const SiteMember& member : roster.members) {
    nodes.push_back({{"name", member.name},
                     {"address", member.address},
                     {"state", member.state},
                     {"neighbour", member.neighbour}});
  }
  return {{"least", roster.least}, {"most", roster.most}, {"up", roster.up}, {"nodes", nodes}};
}

Json epoch_json(const SiteEpochReport& epoch) {
  return {{"standing", epoch.standing}, {"run", epoch.run},
          {"epoch", epoch.epoch},       {"base", epoch.base},
          {"members", epoch.members},   {"left_out", epoch.left_out},
          {"put_out", epoch.put_out},   {"waits_for", epoch.waits_for},
          {"waits_s", epoch.waits_s},   {"lost", epoch.lost},
          {"unequal", epoch.unequal}};
}

}  // namespace

Json site_status_json(const SiteReport& report) {
  Json peers = Json::array();
  for (const SitePeerReport& peer : report.peers) {
    peers.push_back(peer_json(peer));
  }
  Json keys = Json::array();
  for (const SiteRefusedKey& key : report.refused_keys) {
    keys.push_back(refused_key_json(key));
  }
  Json evaluation;
  if (report.evaluation) {
    evaluation = {{"round", report.evaluation->round},
                  {"loss", report.evaluation->loss},
                  {"accuracy", report.evaluation->accuracy},
                  {"r2", report.evaluation->r2},
                  {"rmse", report.evaluation->rmse}};
  }
  return {{"sotto", SOTTO_VERSION},
          {"name", report.name},
          {"phase", name_of(report.phase)},
          {"address", report.address},
          {"round", report.site.round},
          {"rounds", report.rounds},
          {"dimension", report.dimension},
          {"incarnation", hex(report.site.incarnation)},
          {"life", report.site.life},
          {"has_model", report.site.has_model},
          {"training_loss", report.training_loss},
          {"evaluation", evaluation},
          {"own_steps", report.site.own_steps},
          {"mass", report.site.settled_mass},
          {"minted", report.site.minted},
          {"written_off", report.site.written_off},
          {"mass_raised", report.site.raised},
          {"mass_lowered", report.site.lowered},
          {"drained", report.site.drained},
          {"observer", report.observer},
          {"patience_s", report.patience_s},
          {"models_put_back", report.put_backs},
          {"loss_jumps", report.jumps},
          {"resets", report.site.resets},
          {"sums",
           {{"made", report.site.sums.made},
            {"lost", report.site.sums.lost},
            {"unequal", report.site.sums.unequal},
            {"lost_in_a_row", report.site.sums.lost_in_a_row},
            {"sites", report.site.sums.sites},
            {"clipped", report.site.sums.clipped}}},
          {"privacy", report.privacy ? privacy_json(*report.privacy) : Json()},
          {"started_at", report.started_at},
          {"saved_at", report.saved_at},
          {"audit", report.audit
                        ? Json{{"number", report.audit->number}, {"digest", report.audit->digest}}
                        : Json()},
          {"settings", report.settings},
          {"peers", peers},
          {"peers_file_trouble", report.list_trouble},
          {"keys_refused", report.keys_refused},
          {"strangers", report.strangers.waiting},
          {"strangers_room", report.strangers.room},
          {"strangers_cut", report.strangers.cut},
          {"strangers_left", report.strangers.left},
          {"refused_keys", keys},
          {"roster", report.roster ? roster_json(*report.roster) : Json()},
          {"epoch", report.epoch ? epoch_json(*report.epoch) : Json()}};
}

}  // namespace sotto
