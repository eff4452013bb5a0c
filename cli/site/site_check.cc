// `sotto site check`: whether the files of sites fit together.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/text.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/console/output.h>
#include <sotto/sites/process/trust/trust_check.h>
#include <sotto/study/site/site_file.h>
#include <sotto/topology/spectrum.h>
#include <sotto/trainers/settings/agreed_settings.h>

#include "commands.h"
#include "site_config.h"
#include "site_plan.h"

namespace sotto::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSiteCheckExamples =
    "Examples:\n"
    "  sotto site check site.toml\n"
    "  sotto site check hospital/site.toml bank/site.toml university\n"
    "  sotto site check federation/hospital/site.toml federation --json -\n"
    "Of others their site.toml and the list of peers that it names are read, not their keys or "
    "data.\n"
    "A file without a task, for a program with a model of its own, is compared without its data.\n"
    "Exits with 1 where something does not fit, and with 2 where a file cannot be read. What the "
    "loader left out (data) and sites that give more than comes back (drained) do not count.";

using Kind = TrustFinding::Kind;

struct SiteCheckOptions {
  console::CommonOptions common;
  std::string site;
  std::vector<std::string> others;
};

/// What all sites share, and where this one's file sets it.
std::vector<SharedSetting> shared_of(const SiteConfig& config) {
  std::vector<SharedSetting> shared;
  for (const auto& [name, value] : settings_in_file(config)) {
    // An exchange is what the file's algorithm is between sites.
    shared.push_back(
        {name, one_line(value), config.places.line_of(name == "exchange" ? "algorithm" : name)});
  }
  return shared;
}

SiteView view_of(const SiteConfig& config) {
  return {.name = config.site.names.name,
          .lines = read_peers_file(config.site.names.peers, PeerNumbers::of_names),
          .observer = config.site.observer,
          .secure_sum = config.site.secure_sum,
          .colluders = config.site.secure_colluders,
          .settings = shared_of(config),
          .file = config.file,
          .peers_file = config.site.names.peers,
          .monitor = config.monitor
                         ? fmt::format("{}:{}", config.monitor->host, config.monitor->port)
                         : "",
          .listens_elsewhere = !config.site.names.listen.empty()};
}

/// The sites' files that a word stands for: a file, a site's folder, or a folder of such folders.
std::vector<std::string> site_files(const std::string& word) {
  std::error_code code;
  if (!fs::is_directory(word, code)) {
    return {word};
  }
  if (fs::exists(fs::path(word) / "site.toml", code)) {
    return {(fs::path(word) / "site.toml").string()};
  }
  std::vector<std::string> files;
  for (fs::directory_iterator at(word, code), end; !code && at != end; at.increment(code)) {
    std::error_code none;
    if (const auto file = at->path() / "site.toml"; fs::exists(file, none)) {
      files.push_back(file.string());
    }
  }
  if (files.empty()) {
    refuse("others", word, "neither it nor a folder in it has a site.toml");
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<SiteView> read_others(const SiteCheckOptions& options) {
  std::vector<SiteView> views;
  for (const std::string& word : options.others) {
    for (const std::string& file : site_files(word)) {
      if (std::error_code code; !fs::equivalent(file, options.site, code)) {
        views.push_back(view_of(read_site_config(file)));
      }
    }
  }
  return views;
}

/// 1 − ρ of Metropolis weights where all trust is mutual; null else.
Json spectral_gap(std::size_t sites, const TrustReport& report) {
  std::vector<std::size_t> degrees(sites, 0);
  for (const auto& [from, to] : report.edges) {
    if (!std::ranges::binary_search(report.edges, std::pair(to, from))) {
      return {};
    }
    ++degrees[from];
  }
  std::vector<WeightedEdge> edges;
  for (const auto& [from, to] : report.edges) {
    const auto most = static_cast<double>(std::max(degrees[from], degrees[to]));
    edges.push_back({static_cast<Rank>(from), static_cast<Rank>(to), 1 / (1 + most)});
  }
  return spectrum(Topology("trust", static_cast<int>(sites), {edges})).spectral_gap;
}

void print_graph(const console::Output& output, std::size_t sites, const TrustReport& report,
                 const Json& gap) {
  output.line(fmt::format("sites: {}, edges that both ends want: {} (one for each direction)",
                          sites, report.edges.size()));
  output.line(
      fmt::format("senders to a site: {} to {} (the sites whose models one site takes in: fewest "
                  "and most)",
                  report.degree_min, report.degree_max));
  if (gap.is_number()) {
    output.line(
        fmt::format("spectral gap: {:.4g} (1: a round brings all sites together; near 0: what one "
                    "site learns takes about 1 / gap rounds to reach all)",
                    gap.get<double>()));
  }
}

/// Adds what is wrong with the site's key, list and settings, which a program of its own reads.
void look_at_settings(const SiteConfig& config, TrustReport& report) {
  try {
    (void)options_of(study::read_site_file(config.file));
  } catch (const Error& error) {
    report.findings.push_back({Kind::own, config.site.names.name, "", error.what()});
  }
}

/// Adds what loading the site's data comes to.
void look_at_data(const SiteConfig& config, TrustReport& report) {
  const std::string& name = config.site.names.name;
  try {
    const SitePlan plan = make_site_plan(config);
    for (const std::string& warning : plan.warnings) {
      report.findings.push_back({Kind::own, name, "", warning});
    }
    for (const std::string& warning : plan.of_data) {
      report.findings.push_back({Kind::data, name, "", warning});
    }
  } catch (const Error& error) {
    report.findings.push_back({Kind::own, name, "", error.what()});
  }
}

int run(const SiteCheckOptions& options) {
  const console::Output output(options.common);
  const SiteConfig config = read_site_config(options.site);
  std::vector<SiteView> views = {view_of(config)};
  std::vector<SiteView> others = read_others(options);
  std::move(others.begin(), others.end(), std::back_inserter(views));
  TrustReport report = check_trust(views);
  if (config.training.task.empty()) {
    look_at_settings(config, report);
  } else {
    look_at_data(config, report);
  }
  Json found = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const TrustFinding& one : report.findings) {
    rows.push_back({std::string(name_of(one.kind)), one_line(one.site), one_line(one.peer),
                    one_line(one.text)});
    found.push_back({{"kind", name_of(one.kind)},
                     {"site", one_line(one.site)},
                     {"peer", one_line(one.peer)},
                     {"text", one_line(one.text)}});
  }
  Json result = {{"sotto", SOTTO_VERSION},
                 {"sites", views.size()},
                 {"edges", report.edges.size()},
                 {"findings", found}};
  if (views.size() == 1) {
    output.line(fmt::format("{} alone: name files of other sites behind it to compare them",
                            one_line(config.site.names.name)));
  } else {
    const auto gap = spectral_gap(views.size(), report);
    result["degree_min"] = report.degree_min;
    result["degree_max"] = report.degree_max;
    result["spectral_gap"] = gap;
    print_graph(output, views.size(), report, gap);
  }
  if (rows.empty()) {
    output.line("nothing is found that does not fit together");
  } else {
    output.table({"finding", "site", "peer", "what"}, rows);
  }
  output.json(result);
  const bool fits = std::ranges::all_of(
      report.findings, [](const TrustFinding& one) { return is_remark(one.kind); });
  return fits ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_site_check_command(CLI::App& site) {
  auto options = std::make_shared<SiteCheckOptions>();
  CLI::App* command =
      site.add_subcommand("check", "Checks a site's files, alone and against those of others");
  command->add_option("SITE.toml", options->site, "The own site's file")
      ->type_name("FILE.toml")
      ->required();
  command
      ->add_option("OTHERS", options->others,
                   "Other sites' files, their folders, or folders of these")
      ->type_name("PATH...");
  return completed(*command, options, kSiteCheckExamples, run);
}

}  // namespace sotto::cli
