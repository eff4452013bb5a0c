#include "site_words.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/json_text.h>
#include <sotto/base/unix_time.h>
#include <sotto/observe/metrics_text.h>
#include <sotto/study/units.h>

#include "quality.h"
#include "site_metrics.h"

namespace sotto::cli {
namespace {

/// Incarnations are numbers of 64 bits, which JSON's readers may round.
std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

Json peer_json(const SitePeerReport& peer) {
  const sites::PeerState& site = peer.site;
  return {{"name", site.name},
          {"up", site.up},
          {"connected", peer.connected},
          {"state", peer.standing.state},
          {"reason", peer.standing.reason},
          {"trouble", peer.standing.text},
          {"refused", peer.standing.state == "refused"},
          {"contested", peer.contested},
          {"key", peer.key},
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

std::string ago(double then, double now) {
  if (then <= 0) {
    return "never";
  }
  const double seconds = std::max(0.0, now - then);
  return seconds < 120     ? fmt::format("{:.0f} s ago", seconds)
         : seconds < 7'200 ? fmt::format("{:.0f} min ago", seconds / 60)
                           : fmt::format("{:.1f} h ago", seconds / 3'600);
}

std::string direction(const Json& peer) {
  const bool hears = peer.at("hears");
  const bool tells = peer.at("tells");
  return hears && tells ? "both" : hears ? "heard" : tells ? "told" : "none";
}

void print_refused_keys(const console::Output& output, const Json& status) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& key : status.at("refused_keys")) {
    const auto name = key.at("name").get<std::string>();
    rows.push_back(
        {key.at("key").get<std::string>(), key.at("address").get<std::string>(),
         fmt::to_string(key.at("times").get<std::uint64_t>()),
         name.empty() ? "a stranger's"
                      : name + (key.at("listed").get<bool>() ? "'s, whom the list allows nothing"
                                                             : "'s, who is not listed any more")});
  }
  if (!rows.empty()) {
    output.line("");
    output.table({"refused key", "from", "times", "whose"}, rows);
  }
}

}  // namespace

Json site_json(const SiteReport& report) {
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
    evaluation = {{"round", report.evaluation->round}, {"loss", report.evaluation->loss}};
    study::add_quality(*report.evaluation, evaluation);
  }
  return {{"sotto", SOTTO_VERSION},
          {"name", report.name},
          {"phase", report.phase},
          {"address", report.address},
          {"round", report.site.round},
          {"rounds", report.rounds},
          {"dimension", report.dimension},
          {"incarnation", hex(report.site.incarnation)},
          {"life", report.site.life},
          {"has_model", report.site.has_model},
          {"training_loss", report.training_loss},
          {"evaluation", evaluation},
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
          {"privacy", report.privacy ? study::privacy_json(*report.privacy) : Json()},
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
          {"refused_keys", keys}};
}

std::vector<MonitorPage> site_pages(const SiteBoard& board) {
  return {{"/metrics", kMetricsType, [&board] { return site_metrics(board.get(), unix_time()); }},
          {"/status", "application/json",
           [&board] { return json_text(site_json(board.get()), 2) + "\n"; }}};
}

void print_site(const console::Output& output, const Json& status, double now) {
  const auto number = [](const Json& value, const char* format) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>())
                             : std::string("–");
  };
  const auto rounds = status.at("rounds").get<std::uint64_t>();
  output.line(fmt::format("{}: {}, round {}{}", status.at("name").get<std::string>(),
                          status.at("phase").get<std::string>(),
                          status.at("round").get<std::uint64_t>(),
                          rounds > 0 ? fmt::format(" of {}", rounds) : ""));
  const Json& evaluation = status.at("evaluation");
  if (evaluation.is_object()) {
    const study::Quality& quality = study::quality_in(evaluation);
    output.line(fmt::format(
        "test loss {}, {} {} (round {})", number(evaluation.at("loss"), "{:.4f}"), quality.heading,
        quality_text(quality, study::number_or_nan(evaluation.value(quality.field, Json()))),
        evaluation.at("round").get<std::uint64_t>()));
  }
  output.line(fmt::format(
      "training loss {}, mass {}, resets {}", number(status.at("training_loss"), "{:.4f}"),
      number(status.at("mass"), "{:.4f}"), status.at("resets").get<std::uint64_t>()));
  const Json& sums = status.at("sums");
  if (const auto count = [&](const char* name) { return sums.at(name).get<std::uint64_t>(); };
      count("made") + count("lost") > 0) {
    output.line(fmt::format("secure sums: {} rounds, the latest of {} sites; {} rounds without one",
                            count("made"), count("sites"), count("lost")));
    if (count("lost_in_a_row") >= sites::kLongWhile) {
      output.line(fmt::format("NO SECURE SUM for {} rounds: {}", count("lost_in_a_row"),
                              count("unequal") > 0 ? "they do not add up: a site masks wrongly"
                                                   : "too few sites send and answer"));
    }
  }
  if (status.at("drained").get<bool>()) {
    output.line("AT THE FLOOR OF ITS MASS: peers take more than they return; see below");
  }
  const Json& privacy = status.at("privacy");
  if (privacy.is_object()) {
    output.line(fmt::format(
        "privacy: epsilon {} at delta {} after {} steps", number(privacy.at("epsilon"), "{:.4f}"),
        number(privacy.at("delta"), "{:g}"), privacy.at("steps").get<std::uint64_t>()));
  }
  output.line(fmt::format("state written {}, process started {}",
                          ago(status.at("saved_at").get<double>(), now),
                          ago(status.at("started_at").get<double>(), now)));
  if (const Json& audit = status.at("audit"); audit.is_object()) {
    output.line(fmt::format("audit: {} records, the last with digest {}",
                            audit.at("number").get<std::uint64_t>(),
                            audit.at("digest").get<std::string>()));
  }
  if (const auto trouble = status.at("peers_file_trouble").get<std::string>(); !trouble.empty()) {
    output.line(fmt::format("THE FILE OF PEERS IS NOT IN FORCE: {}", trouble));
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& peer : status.at("peers")) {
    std::string trouble = peer.at("trouble");
    if (peer.at("contested").get<bool>()) {
      trouble = fmt::format("TWO PROCESSES HAVE ITS KEY{}{}", trouble.empty() ? "" : "; ", trouble);
    }
    rows.push_back({peer.at("name").get<std::string>(), peer.at("state").get<std::string>(),
                    direction(peer), fmt::to_string(peer.at("round").get<std::uint64_t>()),
                    study::amount(peer.at("bytes_sent").get<double>()),
                    study::amount(peer.at("bytes_received").get<double>()),
                    fmt::to_string(peer.at("offences").get<std::uint64_t>()), std::move(trouble)});
  }
  output.line("");
  output.table({"peer", "state", "trust", "round", "sent", "received", "offences", "trouble"},
               rows);
  print_refused_keys(output, status);
}

}  // namespace sotto::cli
