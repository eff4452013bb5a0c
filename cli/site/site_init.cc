// `sotto site init`: folders for the sites of a federation, and for those that join it.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/input_file.h>
#include <sotto/base/names.h>
#include <sotto/base/text.h>
#include <sotto/comm/trust/key_file.h>
#include <sotto/comm/trust/peers_file.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/observe/monitor_address.h>
#include <sotto/sites/process/trust/peers_lists.h>
#include <sotto/sites/process/trust/site_hosts.h>
#include <sotto/sites/process/trust/trust_plan.h>
#include <sotto/study/toml/reader.h>
#include <sotto/study/toml/text.h>

#include "commands.h"
#include "federation_files.h"
#include "site_config.h"

namespace sotto::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSiteInitExamples =
    "Examples:\n"
    "  sotto site init sites.csv --public-keys keys     each site made its key with `sotto "
    "keygen`\n"
    "  sotto site init sites.csv --trust trust.csv --out federation --template shared.toml\n"
    "  sotto site init sites.csv --out federation       once more, with new lines in sites.csv: "
    "adds\n"
    "                                                   these sites, and leaves what is there\n"
    "sites.csv has the columns name, address and observer, the last two if wanted; trust.csv has\n"
    "from and to: without it all sites send to all.";

constexpr std::uint64_t kMostListBytes = 64U << 20U;
constexpr std::uint64_t kMostTemplateBytes = 1U << 20U;
constexpr std::uint64_t kMostKeyBytes = 4096;

constexpr std::string_view kPlainTemplate =
    "[training]\n"
    "task = \"csv:patients.csv\"        # this site's own data, beside this file\n"
    "# From here on: the same at all sites.\n"
    "model = \"mlp:64\"\n"
    "lr = 0.1\n"
    "rounds = 0                       # on and on\n";

struct SiteInitOptions {
  console::CommonOptions common;
  std::string sites;
  std::string trust;
  std::string out = "federation";
  std::string public_keys;
  std::string shared;
};

std::string read_text(const std::string& option, const std::string& path, std::uint64_t most) {
  const auto text = read_input(path, most);
  if (!text.ok()) {
    refuse(option, path, text.status().message());
  }
  return *text;
}

/// What the files of all sites have in common.
struct SharedPart {
  std::string text{};  ///< below what each has for itself
  MonitorAddress monitor{"127.0.0.1", 9100};
  std::string from{};  ///< the file that it was taken from; empty: none
};

/// The template without what each site has for itself, which is written anew; without `part`, too,
/// where it is the file of a site.
std::string shared_text(const std::string& text, bool of_site) {
  constexpr std::array<std::string_view, 9> kOwn = {
      "sotto-site", "name", "key", "peers", "state", "observer", "listen", "source", "monitor"};
  std::string kept;
  std::string_view rest = text;
  std::string_view line;
  bool in_table = false;
  while (take_line(rest, line)) {
    const auto key = trimmed(line.substr(0, line.find('=')));
    in_table = in_table || trimmed(line).starts_with('[');
    const bool own = in_table ? of_site && key == "part"
                              : std::find(kOwn.begin(), kOwn.end(), key) != kOwn.end();
    if (!own) {
      kept += fmt::format("{}\n", line);
    }
  }
  return kept.substr(std::min(kept.find_first_not_of('\n'), kept.size()));
}

/// `path` is a template, or the file of a site that is there.
SharedPart read_shared(const std::string& path, bool of_site) {
  const std::string text = read_text("template", path, kMostTemplateBytes);
  const toml::table table = study::parse_toml(path, text);
  study::TomlReader in(path, "", table);
  SharedPart shared{.text = shared_text(text, of_site), .from = path};
  shared.monitor = in.parsed("monitor", parse_monitor_address).value_or(shared.monitor);
  return shared;
}

std::string site_text(const PlannedSite& site, const SharedPart& shared, int monitor_port) {
  const std::string host = shared.monitor.host == "::1" ? "[::1]" : shared.monitor.host;
  return fmt::format(
      "sotto-site = 1\n"
      "name = {}\n"
      "key = {}       # stays at this site, readable for its user alone\n"
      "peers = \"peers.csv\"\n"
      "state = \"state\"                # a folder of its own\n"
      "monitor = \"{}:{}\"     # for `sotto status`; this host only\n"
      "{}\n"
      "{}",
      toml_text(site.name), toml_text(site.name + ".key"), host, monitor_port,
      site.observer ? "observer = true\n" : "", shared.text);
}

PublicKey read_public_key(const std::string& folder, const std::string& name) {
  const std::string path = (fs::path(folder) / (name + ".pub")).string();
  const auto text = read_text("public_keys", path, kMostKeyBytes);
  const auto key = PublicKey::parse(trimmed(std::string_view(text).substr(0, text.find('\n'))));
  if (!key) {
    // Not repeated: it may be a secret that was pasted into the wrong file.
    refuse("public_keys", path, "its first line is no public key, as `sotto keygen` writes them");
  }
  return *key;
}

using Present = std::vector<std::optional<PresentSite>>;

/// The settings of new sites: those of the template, of a site that is there, or the usual ones.
SharedPart shared_of(const SiteInitOptions& options, const TrustPlan& plan,
                     const Present& present) {
  if (!options.shared.empty()) {
    return read_shared(options.shared, false);
  }
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    const fs::path file = fs::path(options.out) / plan.sites[i].name / "site.toml";
    if (std::error_code code; present[i] && fs::exists(file, code)) {
      return read_shared(file.string(), true);
    }
  }
  return {.text = std::string(kPlainTemplate)};
}

/// What was made, for the operator.
struct Made {
  std::size_t sites = 0;
  std::vector<std::string> added{};                          ///< names of new sites
  std::string settings_of{};                                 ///< file; empty: the usual ones
  std::vector<std::pair<std::string, std::string>> grown{};  ///< (site, its next list)
  std::size_t edges = 0;                                     ///< of the new sites
};

/// The keys of new sites, which lie in their folders if they are made here.
std::vector<PublicKey> take_keys(const SiteInitOptions& options, const TrustPlan& plan,
                                 const Present& present, StagedFolder& folder,
                                 std::vector<fs::path>& own) {
  std::vector<PublicKey> keys(plan.sites.size());
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    const std::string& name = plan.sites[i].name;
    own.emplace_back();
    if (present[i]) {
      continue;
    }
    own.back() = folder.add_folder(name);
    if (options.public_keys.empty()) {
      const KeyPair pair = make_key_pair();
      write_key_file((own.back() / (name + ".key")).string(), name, pair);
      keys[i] = pair.public_key;
    } else {
      keys[i] = read_public_key(options.public_keys, name);
    }
  }
  return keys;
}

std::vector<std::string> lists_of(const SiteInitOptions& options, const TrustPlan& plan,
                                  const Present& present, const std::vector<PublicKey>& keys) {
  std::vector<std::optional<PresentList>> lists;
  for (const auto& site : present) {
    lists.push_back(site ? std::optional(site->list) : std::nullopt);
  }
  return grown_lists(plan, options.sites, lists, keys);
}

std::string overview_of(const TrustPlan& plan, const Present& present,
                        const std::vector<std::string>& lists, bool makes_keys) {
  std::string overview = "site,folder,public_key,secret_key,peers\n";
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    const std::string& name = plan.sites[i].name;
    const auto lines = parse_peers_file(name, lists[i], PeerNumbers::of_names);
    const auto line = std::ranges::find(lines, name, &TrustedPeer::name);
    const bool secret = present[i] ? present[i]->has_secret : makes_keys;
    overview +=
        fmt::format("{0},{0},{1},{2},{3}\n", name, line->key.text(),
                    secret ? "in the folder: to this site alone" : "at the site", lines.size() - 1);
  }
  return overview;
}

Made make(const SiteInitOptions& options, const TrustPlan& plan, const Present& present) {
  const SharedPart shared = shared_of(options, plan, present);
  Made made{.sites = plan.sites.size(), .settings_of = shared.from};
  StagedFolder folder(options.out);
  std::vector<fs::path> own;
  const auto keys = take_keys(options, plan, present, folder, own);
  const auto lists = lists_of(options, plan, present, keys);
  std::vector<std::optional<int>> ports;
  for (const auto& site : present) {
    ports.push_back(site ? site->monitor_port.value_or(0) : std::optional<int>());
  }
  const auto monitors = monitor_ports(plan, shared.monitor.port, ports);
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    const std::string& name = plan.sites[i].name;
    if (present[i]) {
      if (lists[i] != present[i]->list.text) {
        const fs::path next = fs::path(name) / kGrownList;
        folder.add_file(next, lists[i]);
        made.grown.emplace_back(name, (fs::path(options.out) / next).string());
      }
      continue;
    }
    write_new_file(own[i] / "peers.csv", lists[i]);
    write_new_file(own[i] / "site.toml", site_text(plan.sites[i], shared, monitors[i]));
    if (made.added.empty()) {
      (void)read_site_config((own[i] / "site.toml").string());
    }
    made.added.push_back(name);
  }
  made.edges = static_cast<std::size_t>(std::ranges::count_if(
      plan.edges, [&](const auto& edge) { return !present[edge.first] || !present[edge.second]; }));
  folder.set_overview(overview_of(plan, present, lists, options.public_keys.empty()));
  folder.put_in_place();
  return made;
}

/// What was made, and what operators do next.
void print_made(const console::Output& output, const SiteInitOptions& options, const Made& made) {
  const bool grows = made.added.size() < made.sites;
  const std::string added =
      grows ? fmt::format("added {}", word_list(made.added, "and"))
            : fmt::format("folders of {} sites, and overview.csv", made.added.size());
  output.line(fmt::format("{}: {}; edges: {} (one for each direction)", printable(options.out),
                          added, made.edges));
  output.line(
      options.public_keys.empty()
          ? "A new site's folder holds its secret key: give it to that site alone, and keep "
            "no copy."
          : "Each new site puts its own key, NAME.key, beside its site.toml. It stays there.");
  if (grows) {
    output.line(fmt::format("Settings are those of {}; look at `task`, which is each site's own.",
                            printable(made.settings_of)));
  }
  output.line(
      "Then, at each new site: data where `task` in site.toml says, `sotto site check site.toml`, "
      "`sotto node site.toml`.");
  if (made.grown.empty()) {
    return;
  }
  output.line(fmt::format(
      "Sites that are there stay as they are. Until their lists name {}, they refuse the new ones. "
      "Each operator compares the next list with peers.csv, and puts it in its place by `mv {} "
      "peers.csv`; a running site takes it within a second:",
      word_list(made.added, "and"), kGrownList));
  std::vector<std::vector<std::string>> rows;
  for (const auto& [site, list] : made.grown) {
    rows.push_back({site, list});
  }
  output.table({"site", "next list"}, rows);
}

int run(const SiteInitOptions& options) {
  const console::Output output(options.common);
  TrustPlan plan =
      parse_trust_plan(options.sites, read_text("sites", options.sites, kMostListBytes));
  if (!options.trust.empty()) {
    take_trust_edges(plan, options.trust, read_text("trust", options.trust, kMostListBytes));
  }
  const Present present = read_federation(options.out, plan, options.sites);
  const Made made = make(options, plan, present);
  print_made(output, options, made);
  Json lists = Json::array();
  for (const auto& [site, list] : made.grown) {
    lists.push_back({{"site", site}, {"list", printable(list)}});
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"folder", printable(options.out)},
               {"sites", plan.sites.size()},
               {"added", made.added},
               {"edges", made.edges},
               {"lists_to_replace", lists},
               {"secret_keys", options.public_keys.empty()}});
  return console::kDone;
}

}  // namespace

console::Command add_site_init_command(CLI::App& site) {
  auto options = std::make_shared<SiteInitOptions>();
  CLI::App* command = site.add_subcommand(
      "init", "Makes a folder for each site of a federation: key, list of peers, site.toml");
  command->add_option("SITES.csv", options->sites, "The sites: name, address, observer")
      ->type_name("FILE.csv")
      ->required();
  console::OptionGroup what(*command, "What is made");
  what.option("--out", options->out, "DIR", "The folder to make, or to add sites to");
  what.option("--trust", options->trust, "FILE.csv",
              "Who sends to whom, columns from and to; by default all sites to all");
  what.option("--public-keys", options->public_keys, "DIR",
              "Take each site's NAME.pub from here, and make no keys");
  what.option(
      "--template", options->shared, "FILE.toml",
      "A site's file, of which all but name, key, peers, state, observer, listen and source "
      "goes into each; its monitor's port is the first that is given. By default a new site has "
      "the settings of those that are there");
  return completed(*command, options, kSiteInitExamples, run);
}

}  // namespace sotto::cli
