// `sotto site init`: folders for the sites of a new federation.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/file_descriptor.h>
#include <sotto/base/input_file.h>
#include <sotto/base/separated.h>
#include <sotto/base/text.h>
#include <sotto/base/write_all.h>
#include <sotto/comm/key_file.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/sites/process/trust_plan.h>

#include "commands.h"
#include "site_config.h"

namespace sotto::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSiteInitExamples =
    "Examples:\n"
    "  sotto site init sites.csv --public-keys keys     each site made its key with `sotto "
    "keygen`\n"
    "  sotto site init sites.csv --trust trust.csv --out federation --template shared.toml\n"
    "sites.csv has the columns name, address and observer, the last two if wanted; trust.csv has\n"
    "from and to: without it all sites send to all.";

constexpr std::uint64_t kMostListBytes = 64U << 20U;
constexpr std::uint64_t kMostTemplateBytes = 1U << 20U;
constexpr std::uint64_t kMostKeyBytes = 4096;

constexpr std::string_view kPlainTemplate =
    "# monitor = \"127.0.0.1:9100\"    # for `sotto status`; this host only\n"
    "\n"
    "[training]\n"
    "task = \"csv:data.csv\"            # this site's own data, beside this file\n"
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

void write_new_file(const fs::path& path, std::string_view text) {
  FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  const int trouble = file ? write_all(file.get(), text) : errno;
  if (trouble != 0 || !file.close()) {
    throw std::runtime_error(fmt::format("{} could not be written: {}", printable(path.string()),
                                         std::strerror(trouble != 0 ? trouble : errno)));
  }
}

/// A folder made beside its place, which it comes to whole or not at all.
class NewFolder {
 public:
  explicit NewFolder(const std::string& place) : place_(fs::path(place).lexically_normal()) {
    if (!place_.has_filename()) {
      place_ = place_.parent_path();
    }
    std::error_code code;
    if (place_.empty() || fs::exists(fs::symlink_status(place_, code))) {
      refuse("--out", place, "it is there already; name a new folder");
    }
    made_ = place_.string() + ".XXXXXX";
    if (::mkdtemp(made_.data()) == nullptr) {
      refuse("--out", place, fmt::format("it cannot be made: {}", std::strerror(errno)));
    }
  }
  ~NewFolder() {
    if (!made_.empty()) {
      std::error_code code;
      fs::remove_all(made_, code);
    }
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  fs::path path() const { return made_; }
  void put_in_place() {
    if (::renameat2(AT_FDCWD, made_.c_str(), AT_FDCWD, place_.c_str(), RENAME_NOREPLACE) != 0) {
      refuse("--out", place_.string(),
             fmt::format("it cannot be put there: {}", std::strerror(errno)));
    }
    made_.clear();
  }

 private:
  fs::path place_;
  std::string made_;
};

/// The template without what each site has for itself, which is written anew.
std::string shared_part(const std::string& text) {
  constexpr std::array<std::string_view, 8> kOwn = {"sotto-site", "name",     "key",    "peers",
                                                    "state",      "observer", "listen", "source"};
  std::string kept;
  std::string_view rest = text;
  std::string_view line;
  bool in_table = false;
  while (take_line(rest, line)) {
    const auto key = trimmed(line.substr(0, line.find('=')));
    in_table = in_table || trimmed(line).starts_with('[');
    if (in_table || std::find(kOwn.begin(), kOwn.end(), key) == kOwn.end()) {
      kept += fmt::format("{}\n", line);
    }
  }
  return kept;
}

std::string site_text(const PlannedSite& site, const std::string& shared) {
  return fmt::format(
      "sotto-site = 1\n"
      "name = {}\n"
      "key = {}       # stays at this site, readable for its user alone\n"
      "peers = \"peers.csv\"\n"
      "state = \"state\"                # a folder of its own\n"
      "{}{}",
      toml_text(site.name), toml_text(site.name + ".key"), site.observer ? "observer = true\n" : "",
      shared);
}

PublicKey read_public_key(const std::string& folder, const std::string& name) {
  const std::string path = (fs::path(folder) / (name + ".pub")).string();
  const auto text = read_text("--public-keys", path, kMostKeyBytes);
  const auto key = PublicKey::parse(trimmed(std::string_view(text).substr(0, text.find('\n'))));
  if (!key) {
    // Not repeated: it may be a secret that was pasted into the wrong file.
    refuse("--public-keys", path, "its first line is no public key, as `sotto keygen` writes them");
  }
  return *key;
}

int run(const SiteInitOptions& options) {
  const console::Output output(options.common);
  TrustPlan plan =
      parse_trust_plan(options.sites, read_text("SITES.csv", options.sites, kMostListBytes));
  if (!options.trust.empty()) {
    take_trust_edges(plan, options.trust, read_text("--trust", options.trust, kMostListBytes));
  }
  const std::string shared =
      options.shared.empty()
          ? std::string(kPlainTemplate)
          : shared_part(read_text("--template", options.shared, kMostTemplateBytes));
  const bool makes_keys = options.public_keys.empty();
  NewFolder folder(options.out);
  std::vector<PublicKey> keys;
  for (const PlannedSite& site : plan.sites) {
    const fs::path own = folder.path() / site.name;
    fs::create_directory(own);
    fs::permissions(own, fs::perms::owner_all);
    if (makes_keys) {
      const KeyPair pair = make_key_pair();
      write_key_file((own / (site.name + ".key")).string(), site.name, pair);
      keys.push_back(pair.public_key);
    } else {
      keys.push_back(read_public_key(options.public_keys, site.name));
    }
  }
  const auto lists = peers_lists(plan, options.sites, keys);
  std::string overview = "site,folder,public_key,secret_key,peers\n";
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    const PlannedSite& site = plan.sites[i];
    const fs::path own = folder.path() / site.name;
    write_new_file(own / "peers.csv", lists[i]);
    write_new_file(own / "site.toml", site_text(site, shared));
    if (i == 0) {
      (void)read_site_config((own / "site.toml").string());
    }
    const auto peers = std::count(lists[i].begin(), lists[i].end(), '\n') - 2;
    overview +=
        fmt::format("{0},{0},{1},{2},{3}\n", site.name, keys[i].text(),
                    makes_keys ? "in the folder: to this site alone" : "at the site", peers);
  }
  write_new_file(folder.path() / "overview.csv", overview);
  folder.put_in_place();
  output.line(fmt::format("{}: folders of {} sites, {} edges, and overview.csv",
                          printable(options.out), plan.sites.size(), plan.edges.size()));
  output.line(makes_keys ? "Each folder holds its site's secret key: give it to that site alone, "
                           "and keep no copy."
                         : "Each site puts its own key, which stays there, beside its site.toml.");
  output.json({{"sotto", SOTTO_VERSION},
               {"folder", printable(options.out)},
               {"sites", plan.sites.size()},
               {"edges", plan.edges.size()},
               {"secret_keys", makes_keys}});
  return console::kDone;
}

}  // namespace

console::Command add_site_init_command(CLI::App& site) {
  auto options = std::make_shared<SiteInitOptions>();
  CLI::App* command = site.add_subcommand(
      "init", "Makes a folder for each site of a new federation: key, list of peers, site.toml");
  command->add_option("SITES.csv", options->sites, "The sites: name, address, observer")
      ->type_name("FILE.csv")
      ->required();
  console::OptionGroup what(*command, "What is made");
  what.option("--out", options->out, "DIR", "The folder to make");
  what.option("--trust", options->trust, "FILE.csv",
              "Who sends to whom, columns from and to; by default all sites to all");
  what.option("--public-keys", options->public_keys, "DIR",
              "Take each site's NAME.pub from here, and make no keys");
  what.option(
      "--template", options->shared, "FILE.toml",
      "A site's file, of which all but name, key, peers, state, observer, listen and source "
      "goes into each");
  add_common_options(*command, options->common);
  command->footer(kSiteInitExamples);
  return {command, [options] { return run(*options); }};
}

}  // namespace sotto::cli
