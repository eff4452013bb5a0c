#include "site_words.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/sites/elastic/elastic_wait_watch.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/quality.h>
#include <sotto/study/units.h>

namespace sotto::cli {
namespace {

/// A wait that is shorter is everyday.
constexpr std::chrono::duration<double> kToldAfter = ElasticWaitWatch::kTellAfter;

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

void print_crowd(const console::Output& output, const Json& status) {
  const auto cut = status.at("strangers_cut").get<std::uint64_t>();
  if (cut > 0) {
    output.line("");
    output.line(fmt::format(
        "A CROWD AT THE DOOR: {} connections without a listed key are there, of {} that there is "
        "room for; {} were ended to make room",
        status.at("strangers").get<std::uint64_t>(),
        status.at("strangers_room").get<std::uint64_t>(), cut));
  }
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

std::string number(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>())
                           : std::string("–");
}

void print_model(const console::Output& output, const Json& status) {
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
  const std::string loss = number(status.at("training_loss"), "{:.4f}");
  if (status.at("epoch").is_object()) {
    output.line(fmt::format("training loss {}", loss));
    return;
  }
  output.line(fmt::format("training loss {}, steps of a round {}, mass {}, resets {}", loss,
                          status.at("own_steps").get<std::uint64_t>(),
                          number(status.at("mass"), "{:.4f}"),
                          status.at("resets").get<std::uint64_t>()));
}

void print_sums(const console::Output& output, const Json& sums) {
  const auto count = [&](const char* name) { return sums.at(name).get<std::uint64_t>(); };
  if (count("made") + count("lost") == 0) {
    return;
  }
  output.line(fmt::format("secure sums: {} rounds, the latest of {} sites; {} rounds without one",
                          count("made"), count("sites"), count("lost")));
  if (count("lost_in_a_row") >= sites::kLongWhile) {
    output.line(fmt::format("NO SECURE SUM for {} rounds: {}", count("lost_in_a_row"),
                            count("unequal") > 0 ? "they do not add up: a site masks wrongly"
                                                 : "too few sites send and answer"));
  }
}

/// Mass and privacy: what bounds the site.
void print_limits(const console::Output& output, const Json& status) {
  if (status.at("drained").get<bool>()) {
    output.line("AT THE FLOOR OF ITS MASS: peers take more than they return; see below");
  }
  const Json& privacy = status.at("privacy");
  if (privacy.is_object()) {
    output.line(fmt::format(
        "privacy: epsilon {} at delta {} after {} steps", number(privacy.at("epsilon"), "{:.4f}"),
        number(privacy.at("delta"), "{:g}"), privacy.at("steps").get<std::uint64_t>()));
  }
}

/// What the site writes and reads.
void print_records(const console::Output& output, const Json& status, double now) {
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
}

/// The nodes of a run whose nodes come and go.
void print_nodes(const console::Output& output, const Json& roster) {
  if (!roster.is_object()) {
    return;
  }
  output.line("");
  output.line(fmt::format("{} nodes are up; the run begins with {}, and lets in {} at most",
                          roster.at("up").get<std::size_t>(), roster.at("least").get<std::size_t>(),
                          roster.at("most").get<std::size_t>()));
  std::vector<std::vector<std::string>> rows;
  for (const Json& node : roster.at("nodes")) {
    rows.push_back({node.at("name").get<std::string>(), node.at("address").get<std::string>(),
                    node.at("state").get<std::string>(),
                    node.at("neighbour").get<bool>() ? "yes" : ""});
  }
  output.table({"node", "address", "state", "exchanges"}, rows);
}

/// How a node of a run with one model stands.
void print_epoch(const console::Output& output, const Json& epoch) {
  const auto members = epoch.at("members").get<std::vector<std::string>>();
  std::string text = epoch.at("standing").get<std::string>();
  if (!members.empty()) {
    text += fmt::format(
        " in epoch {}, whose members are {}; {} of its gradients were left out, and "
        "it was put out {} times",
        epoch.at("epoch").get<std::uint64_t>(), fmt::join(members, ", "),
        epoch.at("left_out").get<std::uint64_t>(), epoch.at("put_out").get<std::uint64_t>());
  }
  output.line(text);
  const auto kind = epoch.at("waits_for").get<std::string>();
  const double waits_s = epoch.at("waits_s").get<double>();
  if (!kind.empty() && waits_s >= kToldAfter.count()) {  // each step waits for others for a moment
    const auto lost = epoch.at("lost").get<std::vector<std::string>>();
    output.line(fmt::format("IT WAITS for {:.0f} s now: {}{}{}", waits_s, kind,
                            lost.empty() ? "" : "; lost: ", fmt::join(lost, ", ")));
  }
  const auto unequal = epoch.value("unequal", std::vector<std::string>());
  if (!unequal.empty()) {
    output.line(
        fmt::format("UNEQUAL MODELS, for which they were put out: {}", fmt::join(unequal, ", ")));
  }
}

void print_peers(const console::Output& output, const Json& peers) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& peer : peers) {
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
  output.table({"peer", "state", "trust", "round", "sent", "received", "offences", "trouble"},
               rows);
}

}  // namespace

void print_site(const console::Output& output, const Json& status, double now) {
  print_model(output, status);
  if (const Json& epoch = status.at("epoch"); epoch.is_object()) {
    print_epoch(output, epoch);
  } else {
    print_sums(output, status.at("sums"));
    print_limits(output, status);
    print_records(output, status, now);
  }
  print_nodes(output, status.at("roster"));
  if (const Json& peers = status.at("peers"); !peers.empty()) {
    output.line("");
    print_peers(output, peers);
  }
  print_refused_keys(output, status);
  print_crowd(output, status);
}

}  // namespace sotto::cli
